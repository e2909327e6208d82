"""Engines as policies: scores as utilities, whose engine it is, what it plays, and in games."""

import contextlib
import dataclasses
import math
import random
import sys

import chess
import chess.engine
import numpy as np
import pyspiel
import pytest
from hypothesis import example, given

from precomp_games import chess as prep
from precomp_games import make_policy
from precomp_games.chess.engines import uci as uci_module
from precomp_games.chess.engines.searches import MATE_CP, MAX_CP, MAX_MATE, Line, check_position, game_text
from precomp_games.chess.game import RULES_OF_CHESS
from precomp_games.chess.model import engine_policies
from precomp_games.chess.model.engine_policies import centipawns, score_utility, softmax
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.model.opponents import _options
from precomp_games.policies.mixtures import MixturePolicy
from precomp_games.policies.rows import is_of_history
from tests.chess import fake_engine, test_engine
from tests.oracles.engines import AnsweringEngine, HashEngine
from tests.oracles.games import SEEDS
from tests.properties import examples

GAME, LIMIT = prep.ChessGame(), prep.SearchLimit(nodes=1000)
START, SHUFFLING = chess.STARTING_FEN, "4k2r/8/8/8/8/8/8/R3K3 w - - 0 1"
FAKE = [*test_engine.FAKE, "--remembers"]


# -- scores --------------------------------------------------------------------------------------------------


def test_centipawns_put_every_mate_beyond_every_score():
    scores = [(None, 1), (None, MAX_MATE), (MAX_CP, None), (0, None), (-MAX_CP, None), (None, -MAX_MATE)]
    values = [centipawns(Line("e2e4", cp, mate)) for cp, mate in [*scores, (None, -1)]]
    assert values == sorted(set(values), reverse=True)
    assert values[0] == MATE_CP - 1 and values[-1] == 1 - MATE_CP


@pytest.mark.parametrize(
    ("name", "scale", "values"),
    [
        ("threshold", 400, {399: 0.5, 400: 1.0, -399: 0.5, -400: 0.0}),
        ("linear", 400, {0: 0.5, 100: 0.625, -1000: 0.0, 1000: 1.0}),
        ("linear", 200, {100: 0.75}),
        ("wdl", 200, {0: 0.5}),
    ],
)
def test_score_utilities(name, scale, values):
    utility, board = score_utility(name, scale, "Stockfish 15.1"), chess.Board()
    for cp, expected in values.items():
        assert utility.mover_utility(Line("e2e4", cp, None), board) == pytest.approx(expected)
    for mate in (2, -2):  # which decides
        assert utility.mover_utility(Line("e2e4", None, mate), board) == float(mate > 0)


def test_wdl_is_the_model_of_the_engines_version():
    late, line = chess.Board("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 60"), Line("e2e4", 80, None)
    versions = {"Stockfish 15.1": "sf15.1", "Stockfish 16": "sf16", "Stockfish 15 [Hash=64]": "sf15"}
    for name, model in versions.items():
        utility = score_utility("wdl", 400.0, name)
        expected = chess.engine.Cp(80).wdl(model=model, ply=late.ply()).expectation()
        assert utility.mover_utility(line, late) == expected != utility.mover_utility(line, chess.Board())
    for name in ("stockfish", "Stockfish dev-20240101"):
        with pytest.raises(ValueError, match=r"score_utility\(\): expected Stockfish .* got"):
            score_utility("wdl", 400.0, name)


def test_softmax():
    assert softmax([30, 30], 1e-6) == pytest.approx([0.5, 0.5])
    assert softmax([31, 30], 1e-6).tolist() == [1.0, 0.0]
    assert softmax([100, 0], 100)[0] == pytest.approx(1 / (1 + math.exp(-1)))
    assert softmax([MATE_CP - 1, -MATE_CP + 1, 5], 0.1).tolist() == [1.0, 0.0, 0.0]
    assert softmax([3, 2, 1], 1e9) == pytest.approx(np.full(3, 1 / 3))
    for temperature in (0.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"softmax\(\): expected temperature_cp"):
            softmax([1.0], temperature)


# -- what is played ------------------------------------------------------------------------------------------


@examples(24)
@given(SEEDS)
@example(1)
def test_who_remembers_the_game_repeats_nothing_while_ahead(seed):
    """By python-chess's own board, over games in which rooks and kings go back and forth."""
    game = pyspiel.load_game("python_chess", {**RULES_OF_CHESS, "fen": SHUFFLING})
    engine, rng = HashEngine(200.0 + seed % 50), random.Random(seed)
    plain, policy = (
        prep.EnginePolicy(game, engine, LIMIT, 30.0, 3, repeats=which) for which in (True, False)
    )
    state, board, left_out = game.new_initial_state(), chess.Board(SHUFFLING), 0
    while not state.is_terminal() and len(board.move_stack) < 30:
        lines, allowed = engine.result(state.epd, LIMIT, 3).lines, set()
        for line in lines:
            board.push_uci(line.move)
            if line.cp > 0 and not board.is_repetition(2):
                allowed.add(line.move)
            board.pop()
        row, others = policy.action_probabilities(state), plain.action_probabilities(state)
        if lines[0].cp <= 0 or not allowed:
            assert row == others
        else:
            assert {prep.move_of(action).uci() for action in row} == allowed
            left_out += len(others) - len(row)
        back = [action for action in state.legal_actions() if state.repeats(prep.move_of(action))]
        action = rng.choice(back or list(row))
        state.apply_action(action)
        board.push(prep.move_of(action))
    assert left_out > 0 or seed != 1


def test_where_no_rule_counts_nothing_is_remembered():
    state = pyspiel.load_game("python_chess", {"fen": SHUFFLING}).new_initial_state()
    for move in ("a1a2", "h8h7", "a2a1"):
        state.apply_action(prep.action_of(chess.Move.from_uci(move)))
    assert not state.repeats(chess.Move.from_uci("h7h8"))


def test_how_an_engine_plays():
    engine, state = AnsweringEngine(), GAME.new_initial_state()
    best, _, third = (
        prep.action_of(chess.Move.from_uci(x.move)) for x in engine.result(state.epd, LIMIT, 3).lines
    )

    def row(**how):
        return prep.EnginePolicy(GAME, engine, LIMIT, 100.0, 2, **how).action_probabilities(state)

    assert row(plays="bestmove") == {third: 0.75, best: 0.25}
    assert row() == row(plays="softmax")
    engine.engine_id = "Stockfish 15.1 [Hash=32, UCI_Elo=1800, UCI_LimitStrength=true]"
    assert row(plays="bestmove", samples=50) == row(plays="bestmove")
    searches = [(multipv, samples) for _, _, multipv, samples in engine.asked]
    assert searches == [(1, 1), (2, 0), (2, 0), (1, 50), (1, 20)]


@pytest.mark.parametrize(
    "options", ["UCI_Elo=1400, UCI_LimitStrength=true", "Skill Level=0", "skill level=0", "Hash=64"]
)
def test_scores_of_a_weakened_engine_are_refused(options):
    """Whoever reads its scores is refused; whoever reads its moves is not, and asks for several."""
    engine, weak, settings = HashEngine(), "Hash" not in options, prep.PreparationSettings(max_plies=3)
    engine.engine_id = f"Stockfish 15.1 [{options}]"
    linear = engine_policies.LinearUtility()
    for name, make in (
        ("EnginePolicy", lambda: prep.EnginePolicy(GAME, engine, LIMIT, 10.0)),
        ("EngineMenu", lambda: engine_policies.EngineMenu(engine, LIMIT, 2, 2, 50.0)),
        ("EngineEvaluation", lambda: prep.EngineEvaluation(engine, LIMIT, 2, linear)),
        ("preparation_tree", lambda: prep.preparation_tree(settings, engine)),
    ):
        message = (
            rf"{name}\(\): expected options .* got '{options.split(',')[0]}'.* scores.*fewer nodes.*bestmove"
        )
        with pytest.raises(ValueError, match=message) if weak else contextlib.nullcontext():
            make()
    policy = prep.EnginePolicy(GAME, engine, LIMIT, 10.0, plays="bestmove")
    assert policy.samples == (20 if weak else 1)  # at full strength there is nothing to draw


# -- engines in specs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [prep.SearchLimit(nodes=77), prep.SearchLimit(depth=4)])
def test_without_a_name_it_is_the_readers_engine_also_in_parts_of_a_spec(limit):
    rng, states = random.Random(0), [GAME.new_initial_state()]
    while len(states) < 12:
        states.append(states[-1].child(rng.choice(states[-1].legal_actions())))
    engine, spec = HashEngine(), f"uci(r=20,top_k=3,{limit})"
    own = prep.EnginePolicy(GAME, engine, limit, 20.0, 3).action_probabilities_batch(states)
    assert prep.opponent_policy(GAME, spec, engine).action_probabilities_batch(states) == own
    noisy = prep.opponent_policy(GAME, f"noisy(policy={spec},epsilon=0.25)", engine)
    for state, row, plain in zip(states, noisy.action_probabilities_batch(states), own, strict=True):
        legal = state.legal_actions()
        mixed = {a: 0.75 * plain.get(a, 0.0) + 0.25 / len(legal) for a in legal}
        assert row == pytest.approx(mixed, abs=1e-15)
    assert {limit for _, limit, _ in engine.asked} == {str(limit)}
    with pytest.raises(ValueError, match=r"expected uci\(engine=...\), a path or a command, got no engine"):
        make_policy(GAME, "uci()")  # afterwards it is nobody's


def test_a_mixture_shares_what_is_known_of_positions():
    policy = prep.opponent_policy(GAME, "mixture(a=uci(r=5),b=uci(r=40),weights=of(a=3,b=1))", HashEngine())
    assert isinstance(policy, MixturePolicy)
    assert policy._position_key is prep.board_key
    assert policy.weights.tolist() == [0.75, 0.25]


def test_options_whose_names_have_spaces_are_written_with_underscores():
    given = pyspiel.game_parameters_from_string("of(Skill_Level=5,UCI_Elo=1500,Hash=1)")
    assert _options(given) == {"Skill Level": 5, "UCI_Elo": 1500, "Hash": 1}


DRAWN = "to depend on no history, got a mixture that is drawn once"


def test_refusals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pgn").write_text('[White "A"]\n[Black "B"]\n\n1. e4 e5 *\n')
    for spec, message in (
        ("uci(nodes=-5)", "nodes"),
        ("uci(depth=20000)", "depth to be an integer from 1 to 10000"),
        ("uci(store=a.sqlite)", "engine= beside store="),
        ("uci(options=of(Hash=1))", "engine= beside options="),
        ("uci(plays=worst)", "plays"),
        ("noisy(policy=mixture(a=uci(),b=uci(r=40)))", DRAWN),
        ("games(file=x.pgn,prior=mixture(a=uci(),b=uci()))", DRAWN),
        (f"uci(engine={sys.executable} arguments)", "no such file"),  # one file, and no command
    ):
        with pytest.raises((ValueError, prep.EngineError), match=message):
            prep.opponent_policy(GAME, spec, HashEngine(), trusted=True)


# -- games, by all moves so far ------------------------------------------------------------------------------


def games(number, plies, fen=START, seed=0):
    """Random games, several of which begin alike."""
    rng, found = random.Random(seed), []
    for k in range(number):
        board = chess.Board(fen)
        for move in found[-1][: plies // 2] if k % 2 else []:
            board.push(move)
        while len(board.move_stack) < plies:
            board.push(rng.choice(list(board.legal_moves)))
        found.append(board.move_stack[:])
    return found


def turns(fen, moves):
    """Return (question, the fake engine's answer) at each turn of one side, whose last is after the moves."""
    board, searched, found = chess.Board(fen), [], []
    for k in range(len(moves) + 1):
        if k % 2 == len(moves) % 2:
            searched.append(board.fen())
            found.append((game_text(chess.Board(fen), moves[:k]), fake_engine.remembered(searched)))
        if k < len(moves):
            board.push(moves[k])
    return found


def after(moves):
    state = GAME.new_initial_state()
    for move in moves:
        state = state.child(prep.action_of(move))
    return state


@pytest.fixture
def counted(monkeypatch):
    """Return a list that gets (moves of the game so far, None for a position; nodes) of each search."""
    searches = []

    class Counted(uci_module.SearchCommand):
        def start(self):
            turn, limit = self._question.turn, self._question.limit
            searches.append((None if turn is None else len(turn.moves), limit.nodes))
            super().start()

    monkeypatch.setattr(uci_module, "SearchCommand", Counted)
    return searches


@pytest.mark.parametrize(("fen", "workers"), [(START, 3), ("8/5k2/8/8/8/8/3PK3/8 b - - 3 40", 1)])
def test_what_is_played_depends_on_the_game_alone(tmp_path, fen, workers):
    """In any order, by any number of engines, some of which die amid their games, beside other searches."""
    asked = [turn for moves in games(6, 7, fen) for turn in turns(fen, moves)]
    random.Random(1).shuffle(asked)
    command = [*FAKE, "--fault=exit", "--times=2", f"--state={tmp_path / 'state'}"]
    with prep.EnginePool(command, workers=workers, timeout_seconds=20) as pool:
        for first in range(0, len(asked), 5):
            some = asked[first : first + 5]
            results = pool.search([text for text, _ in some], LIMIT, 1, samples=1)
            assert [r.played for r in results] == [((answer, 1),) for _, answer in some]
            pool.search([chess.Board(fen).epd()], LIMIT, 2)


def test_a_game_goes_on_where_it_was(counted):
    """Turn by turn a game costs a search each, several of them beside each other and beside positions too."""
    lines = [turns(START, games(3, 9, seed=seed)[0]) for seed in (2, 3)]
    with prep.EnginePool(FAKE, workers=2, timeout_seconds=20) as pool:
        for together in zip(*lines, strict=True):
            pool.search([text for text, _ in together], LIMIT, 1, samples=1)
            pool.search([chess.Board().epd()], LIMIT, 2)
        assert sum(moves is not None for moves, _ in counted) == 10 and len(counted) == 15
        again = pool.search([lines[0][-1][0]], LIMIT, 1, samples=2)[0]  # two new games of five turns each
        assert len(counted) == 25 and again.samples == 2 and len(again.played) == 1


def test_a_longer_search_is_no_turn_of_the_game(counted):
    """If a turn needs more than the limit for all lines, the game before it is played at the limit."""
    _, (second, _) = turns(START, games(1, 2)[0])
    with prep.EnginePool([*FAKE, "--fault=few-lines"], workers=1, timeout_seconds=20) as pool:
        pool.search([second], LIMIT, 2)
    assert counted == [(0, 1000), (2, 1000)] * 2 + [(0, 1000), (2, 2000)]


def test_games_are_stored_and_trees_share_no_positions_against_one_who_plays_by_them(tmp_path):
    """Two ways to one position are two games, and may be answered otherwise."""
    (moves,) = games(1, 6)
    path, state = tmp_path / "store.sqlite", after(moves)
    expected = {prep.action_of(chess.Move.from_uci(turns(START, moves)[-1][1])): 1.0}
    with prep.EnginePool(FAKE, workers=1) as pool, prep.EvaluationStore(path) as store:
        engine = prep.StoredEngine(store, pool)
        policy = prep.EnginePolicy(GAME, engine, LIMIT, 10.0, plays="game")
        assert policy.action_probabilities(state) == expected and policy.of_history
        ways = (map(chess.Move.from_uci, way.split()) for way in ("g1f3 g8f6 b1c3", "b1c3 g8f6 g1f3"))
        one, other = (policy.action_probabilities(after(way)) for way in ways)
        assert one != other
        settings = prep.PreparationSettings(opponent_plays="game", penalty=0.01, max_plies=3)
        assert len(prep.preparation_tree(settings, engine).position) == 0
        assert len(
            prep.preparation_tree(dataclasses.replace(settings, opponent_plays="bestmove"), engine).position
        )
        with pytest.raises(ValueError, match='expected price="infosets" with a policy that depends on how'):
            prep.preparation_tree(dataclasses.replace(settings, price="positions"), engine)
        for spec in (
            "uci(plays=game)",
            "noisy(policy=uci(plays=game),epsilon=0.1)",
            "mixture(a=uci(plays=game),b=uci())",
        ):
            policies = preparation_policies(prep.PreparationSettings(opponent=spec, trusted=True), engine)
            assert is_of_history(policies.sigma[1]) and not is_of_history(policies.sigma[0])
    with prep.EvaluationStore(path, read_only=True) as store:
        policy = prep.EnginePolicy(GAME, prep.StoredEngine(store), LIMIT, 10.0, plays="game")
        assert policy.action_probabilities(state) == expected
        with pytest.raises(prep.EngineError, match=r"1 position\(s\) that are not, the first '.* moves"):
            policy.action_probabilities(state.child(state.legal_actions()[0]))


@pytest.mark.parametrize(
    "text",
    [
        f"{START} moves e2e5",
        f"{START} moves f2f3 e7e5 g2g4 d8h4",  # mate
        "8/8/8/8/8/8/8/8 w - - 0 1 moves",
        "nonsense moves e2e4",
        f"{START} moves e2e4 e7e5 0000 d7d5",  # an engine stops to read there
        f"{START} movese2e4",
        f"{START} moves  e2e4",
        "4k3/8/8/8/8/8/8/4K2R w K - 0 1 moves e1h1",
        "4k3/8/8/8/8/8/8/4K2R moves e1g1",
        "4k3/8/8/8/8/8/8/4K2R w K - 0 99999 moves e1g1",
        " moves",
    ],
)
def test_what_is_no_game_is_refused(text):
    with pytest.raises(ValueError, match="expected a game as FEN, 'moves' and legal moves as UCI"):
        check_position(text)


@pytest.mark.engine
@pytest.mark.parametrize(("side", "nodes"), [(0, 5000), (1, 300)])
def test_a_game_is_played_as_through_python_chess(side, nodes):
    """The model's move is the engine's in a game that python-chess plays with it."""
    rng = random.Random(nodes + side)
    with (
        prep.EnginePool(prep.find_engine(), workers=2) as pool,
        chess.engine.SimpleEngine.popen_uci(prep.find_engine()) as engine,
    ):
        stored = prep.StoredEngine(prep.EvaluationStore(":memory:"), pool)
        policy = prep.EnginePolicy(GAME, stored, prep.SearchLimit(nodes=nodes), 10.0, plays="game")
        state, board, turns_played = GAME.new_initial_state(), chess.Board(), 0
        while not state.is_terminal() and state.ply < 30:
            if state.current_player() == side:
                move = engine.play(board, chess.engine.Limit(nodes=nodes), game=0).move
                assert policy.action_probabilities(state) == {prep.action_of(move): 1.0}
                turns_played += 1
            else:
                move = prep.move_of(rng.choice(state.legal_actions()))
            state = state.child(prep.action_of(move))
            board.push(move)
        assert stored.searches == turns_played > 8
