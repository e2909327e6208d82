"""Matches: the rules, seeds, what is expected against brute force, exits, intervals and files."""

import dataclasses
import functools
import math

import chess
import chess.pgn
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import policy
from open_spiel.python.algorithms.expected_game_score import policy_value
from scipy import optimize, stats

from precomp_games.algorithms import best_precomputation
from precomp_games.chess import (
    Book,
    ChessGame,
    PreparationSettings,
    action_of,
    book_exits,
    control_book,
    preparation_book,
    preparation_tree,
)
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.play.match import MatchGame, MatchResult, play_match, write_match_pgn
from precomp_games.chess.play.match_statistics import MatchStatistics, sprt
from precomp_games.commands import main
from precomp_games.policies.playouts import mean_interval
from tests.chess.test_prepare import BLACK_FIRST
from tests.oracles.chess_books import book_of, entry
from tests.oracles.engines import HashEngine
from tests.oracles.games import SEEDS, uniform
from tests.oracles.pgn import games_of
from tests.properties import examples

START = chess.STARTING_FEN


def first(state):
    """Return the first move in alphabetical order."""
    return {min(state.legal_actions(), key=state.action_to_string): 1.0}


def playing(*moves):
    """Return a policy that plays these moves in turn, whatever happens, and then any."""
    line = [action_of(chess.Move.from_uci(move)) for move in moves]

    def policy(state):
        turn = len(state.history()) // 2
        return {line[turn]: 1.0} if turn < len(line) else first(state)

    return policy


def no_book(fen=START, side=chess.WHITE):
    return Book(chess.Board(fen), side, [])


@functools.cache
def prepared(player=0, menu=0):
    """(settings, the best book's value, the book, the opponent's policy, our own, what leaves are worth)."""
    settings = PreparationSettings(
        player=player, penalty=0.002, opponent_temperature_cp=30.0, max_plies=8, menu=menu
    )
    engine = HashEngine(spread=600.0)
    tree = preparation_tree(settings, engine)
    best = best_precomputation(tree, player)
    policies = preparation_policies(settings, engine)
    opponent, own = policies.sigma[1 - player], policies.sigma[player]
    return settings, best, preparation_book(tree, player, best.states()), opponent, own, policies.leaf_value


# -- what is expected ----------------------------------------------------------------------------------------


QUEEN = "k7/8/2K5/8/8/8/8/1Q6 w - - 0 1"


def few(state):
    """Return a mate, a stalemate, and other moves at odds."""
    names = {state.action_to_string(action): action for action in state.legal_actions()}
    wanted = [names[name] for name in ("Qb7#", "Qb6", "Kc7", "Qb5", "Kd5", "Qa2+") if name in names]
    actions = wanted or sorted(names.values())[:2]
    odds = np.arange(1.0, 1.0 + len(actions))
    return dict(zip(actions, (odds / odds.sum()).tolist(), strict=True))


@pytest.mark.parametrize(
    ("side", "known"),
    [
        (chess.WHITE, []),
        (chess.WHITE, [entry("", {"b1b5": 0.5, "c6c7": 0.5}), entry("b1b5 a8a7", {"b5b6": 1, "b5b7": 0})]),
        (chess.BLACK, [entry("c6c7", {"a8a7": 1.0})]),
    ],
)
def test_the_mean_of_many_games_is_the_expected_score(side, known):
    rows = {p.history: {action_of(m.move): m.probability for m in p.moves if m.probability} for p in known}

    class Both(policy.Policy):
        """The book where it knows a move, and elsewhere, as for the opponent, few moves."""

        def action_probabilities(self, state, player_id=None):
            return rows.get(tuple(state.moves())) or few(state)

    game = ChessGame({"fen": QUEEN, "max_plies": 4})
    white, black = policy_value(game.new_initial_state(), [Both(game, [0, 1])] * 2)
    found = play_match(Book(chess.Board(QUEEN), side, known), few, few, 300, max_plies=4)
    assert found.score == pytest.approx(white if side == chess.WHITE else black, abs=4 * found.standard_error)
    assert 0.0 < found.standard_error < 0.025


@pytest.mark.parametrize(("player", "menu"), [(0, 1), (1, 0)])
def test_exits_promise_what_the_preparation_does_and_games_leave_there(player, menu):
    settings, best, book, opponent, own, leaf_value = prepared(player, menu)
    assert best.size > 3
    exits = book_exits(book, opponent, leaf_value, horizon=settings.max_plies)
    assert math.fsum(each.reach for each in exits) == pytest.approx(1.0)
    promised = math.fsum(each.reach * each.promised for each in exits)
    assert promised == pytest.approx(best.utility, abs=1e-6)
    assert exits == sorted(exits, key=lambda each: -each.reach)
    games = 120
    found = play_match(book, opponent, own, games, seed=5, max_plies=10)
    histories = {p.history for p in book.positions}
    for game in found.games:
        own_plies = range(player, len(game.moves), 2)
        assert game.left == next((ply for ply in own_plies if game.moves[:ply] not in histories), None)
    rows = found.exit_scores(exits)
    assert len(rows) == len(exits) and sum(row.games for row in rows) == games
    common = [(row.games, games * row.exit.reach) for row in rows if games * row.exit.reach >= 5]
    rare = games - np.sum(common, axis=0)
    counts, expected = zip(*common, *([rare] if rare[1] > 1e-9 else []), strict=True)
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    weighted = math.fsum(row.games * row.score for row in rows if row.games)
    assert weighted / games == pytest.approx(found.score)
    for row in rows:
        assert row.interval[0] <= row.score <= row.interval[1] or math.isnan(row.score)


def test_games_depend_on_seed_and_number_alone():
    _, _, book, opponent, own, _ = prepared()

    def match(games, **how):
        return play_match(book, opponent, own, games, max_plies=12, **how)

    whole = match(10, seed=3)
    for batch in (1, 7):
        assert match(10, seed=3, batch=batch) == whole
    assert match(4, seed=3).games == whole.games[:4]
    assert match(10, seed=[3]) == whole
    assert match(10, seed=4).games != whole.games
    assert len({game.moves for game in whole.games}) > 3


def test_nothing_is_asked_in_book_and_many_games_ask_at_once():
    _, _, book, opponent, own, _ = prepared()
    asked = []

    class Own:
        def action_probabilities_batch(self, states):
            asked.append([tuple(state.moves()) for state in states])
            return own.action_probabilities_batch(states)

    play_match(book, opponent, Own(), 40, max_plies=12)
    assert not {p.history for p in book.positions} & {moves for batch in asked for moves in batch}
    assert len(asked) <= 6 and max(map(len, asked)) > 20


# -- the rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fen", "own", "replies", "ending", "plies", "score"),
    [
        (START, ("g1f3", "f3g1") * 5, ("g8f6", "f6g8") * 5, "threefold repetition", 8, 0.5),
        ("4k3/8/8/8/8/8/8/R3K3 w - - 100 80", (), (), "fifty moves", 0, 0.5),
        # Mate on the hundredth half-move wins.
        ("7k/8/6K1/8/8/8/8/R7 w - - 99 80", ("a1a8",), (), "checkmate", 1, 1.0),
        (START, ("f2f3", "g2g4"), ("e7e5", "d8h4"), "checkmate", 4, 0.0),
    ],
)
def test_rules_are_those_of_matches_for_either_side(fen, own, replies, ending, plies, score):
    """Which are tried in test_game.py."""
    (game,) = play_match(no_book(fen), playing(*replies), playing(*own), 1, max_plies=20).games
    assert (game.ending, len(game.moves), game.score) == (ending, plies, score)
    other = play_match(no_book(fen, chess.BLACK), playing(*own), playing(*replies), 1, max_plies=20).games[0]
    assert (other.moves, other.ending, other.score) == (game.moves, ending, 1.0 - score)


@examples(60)
@given(fen=st.sampled_from([START, "4k3/8/8/8/8/8/8/R3K3 w - - 60 80", BLACK_FIRST]), seed=SEEDS)
def test_games_end_where_python_chess_ends_them(fen, seed):
    (game,) = play_match(no_book(fen), uniform, uniform, 1, seed=seed, max_plies=150).games
    board = chess.Board(fen)
    for move in game.moves:
        assert not (board.outcome() or board.is_repetition(3) or board.halfmove_clock >= 100)
        board.push(move)
    outcome, claims = board.outcome(), board.is_repetition(3) or board.halfmove_clock >= 100
    assert outcome or claims or len(game.moves) == 150
    assert game.score == {True: 1.0, False: 0.0}.get(outcome and outcome.winner, 0.5)


def test_three_hundred_plies_are_a_draw():
    games = play_match(no_book(), uniform, uniform, 3, seed=1).games
    long = [game for game in games if len(game.moves) >= 300]
    assert long and {(len(game.moves), game.ending, game.score) for game in long} == {(300, "too long", 0.5)}


# -- where games leave the book ------------------------------------------------------------------------------


def test_positions_that_the_book_does_not_lead_to_are_not_in_it():
    book = book_of("| e2e4", "d2d4 d7d5 | c2c4")
    (game,) = play_match(book, playing("d7d5"), playing("d2d4"), 1, max_plies=9).games
    assert game.left == 2 and game.exit == game.moves[:2] and game.moves[0].uci() == "e2e4"
    # A position that others lead to is not in the book: it counts histories.
    book = book_of("| g1f3", "g1f3 g8f6 | f3g1")
    assert play_match(book, playing("g8f6", "f6g8"), first, 1, max_plies=9).games[0].left == 4


def test_a_game_may_end_inside_the_book():
    mate = book_of("f2f3 | e7e5", "f2f3 e7e5 g2g4 | d8h4", side=chess.BLACK)
    white = playing("f2f3", "g2g4")
    found = play_match(mate, white, first, 3)
    assert found.inside == 3 and found.score == 1.0 and found.standard_error == 0.0
    assert 0.3 < found.interval[0] < found.interval[1] <= 1.0
    (end,) = book_exits(mate, white)
    assert end.over and end.promised == 1.0 and end.reach == 1.0
    assert found.exit_scores([end])[0].games == 3
    # Unexpected exits are reported too, with a reach of 0.
    other = play_match(mate, playing("f2f3", "a2a3"), first, 2, max_plies=6)
    expected, unexpected = other.exit_scores([end])
    assert expected.games == 0 and math.isnan(expected.score) and expected.interval == (0.0, 1.0)
    assert unexpected.games == 2 and unexpected.exit.reach == 0.0 and unexpected.exit.promised is None


def test_a_horizon_promises_a_draw():
    book = book_of("| e2e4")
    (end,) = book_exits(book, playing("e7e5"), lambda state: 0.9, horizon=2)
    assert end.promised == 0.5 and not end.over
    (end,) = book_exits(book, playing("e7e5"), lambda state: 0.9, horizon=3)
    assert end.promised == 0.9
    assert book_exits(book, playing("e7e5"))[0].promised is None
    black = Book(chess.Board(), chess.BLACK, [])
    (end,) = book_exits(black, playing("e2e4"), lambda state: 0.9)
    assert end.promised == pytest.approx(0.1) and len(end.history) == 1 and end.reach == 1.0


# -- intervals, files ----------------------------------------------------------------------------------------


def _result(scores):
    return MatchResult(no_book(), tuple(MatchGame(k, (), s, "checkmate", 0) for k, s in enumerate(scores)))


def test_intervals_hold_by_enumeration():
    """All results of 60 games, with their probabilities, for truths up to 0.998."""
    counts = np.array([(won, drawn, 60 - won - drawn) for won in range(61) for drawn in range(61 - won)])
    ends = np.array([mean_interval(np.repeat([1.0, 0.5, 0.0], row), 0.0, 1.0) for row in counts])
    assert ((ends[:, 0] >= 0.0) & (ends[:, 0] < ends[:, 1]) & (ends[:, 1] <= 1.0)).all()
    elos = np.array([MatchStatistics(*row).elo_interval for row in counts.tolist()])
    for truth in (0.5, 0.7, 0.9, 0.95, 0.97, 0.985, 0.99, 0.998):
        held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        by_elo = (elos[:, 0] <= elo_of(truth)) & (elo_of(truth) <= elos[:, 1])
        for by_draws in (0.0, 0.3, 0.7):
            drawn, lost = 2.0 * (1.0 - truth) * by_draws, (1.0 - truth) * (1.0 - by_draws)
            odds = stats.multinomial.pmf(counts, 60, [1.0 - drawn - lost, drawn, lost])
            assert odds[held].sum() >= 0.94
            assert truth > 0.99 or by_draws == 0.0 or 0.93 < odds[by_elo].sum() < 0.99


def test_standard_errors_are_those_of_a_mean():
    found = _result([1.0, 0.5, 0.0, 1.0])
    assert found.score == 0.625 and found.standard_error == pytest.approx(np.std([1, 0.5, 0, 1], ddof=1) / 2)
    assert math.isnan(_result([1.0]).standard_error)
    low, high = _result([1.0] * 100).interval
    assert low == pytest.approx(0.954, abs=0.002) and high == 1.0


def test_games_are_written_as_pgn(tmp_path):
    _, _, book, opponent, own, _ = prepared(1)
    found = play_match(book, opponent, own, 6, max_plies=20)
    path = tmp_path / "games.pgn"
    write_match_pgn(found, path, {"Black": 'A "book"', "White": "Engine"})
    for game, read in zip(found.games, games_of(path), strict=True):
        assert tuple(read.mainline_moves()) == game.moves
        assert read.headers["Result"] == {1.0: "0-1", 0.5: "1/2-1/2", 0.0: "1-0"}[game.score]
        assert read.headers["Round"] == str(game.number + 1)
        assert read.headers["Termination"] == game.ending and read.headers["White"] == "Engine"
        comments = [node.ply() for node in [read, *read.mainline()] if node.comment == "out of book"]
        left = game.left
        assert comments == ([] if left in (None, len(game.moves)) else [left])
    write_match_pgn(play_match(no_book(BLACK_FIRST), uniform, uniform, 2, max_plies=5), path)
    assert [read.headers["FEN"] for read in games_of(path)] == [BLACK_FIRST] * 2


# -- controls ------------------------------------------------------------------------------------------------


@functools.cache
def controlled(player, menu=0):
    """(settings, policies, {history: reach} where we play the analyst's first move, by brute force)."""
    settings = PreparationSettings(player=player, opponent_temperature_cp=40.0, max_plies=9, menu=menu)
    engine = HashEngine()
    opponent = preparation_policies(settings, engine).sigma[1 - player]
    found, level = {}, [(settings.game().new_initial_state(), 1.0)]
    while level:
        following = []
        for state, reach in level:
            if state.is_terminal():
                continue
            if state.current_player() == player:
                found[tuple(state.moves())] = reach
                result = engine.result(state.epd, settings.analyst_limit, settings.top_k)
                row = {action_of(chess.Move.from_uci(result.lines[0].move)): 1.0}
            else:
                row = opponent.action_probabilities(state)
            following += [(state.child(action), reach * p) for action, p in row.items()]
        level = following
    chosen = preparation_policies(dataclasses.replace(settings, menu=max(1, menu)), engine)
    return settings, chosen, found


def learned(known, count, moves):
    """Return the reaches of positions in the order of a control: lines from what is most reached so far."""
    learnt = {}

    def rank(history):  # of equals the shorter one, and then the first by its actions
        return -round(known[history], 12), len(history), list(map(action_of, history))

    while len(learnt) < min(count, len(known)):
        there = [h for h in known if h not in learnt and (len(h) < 2 or h[:-2] in learnt)]
        for _ in range(min(moves, count - len(learnt))):
            if not there:
                break
            best = min(there, key=rank)
            learnt[best] = known[best]
            there = [h for h in known if len(h) >= 2 and h[:-2] == best]  # after the likeliest replies
    return list(learnt.values())


@pytest.mark.parametrize(("player", "menu"), [(0, 0), (1, 0), (1, 4)])
def test_controls_have_the_most_reached_lines(player, menu):
    settings, policies, known = controlled(player, menu)
    for count, moves in ((0, 1), (1, 1), (9, 1), (9, 3), (10_000, 1), (10_000, 10)):
        book = control_book(settings, policies, positions=count, moves=moves)
        assert [p.reach for p in book.positions] == pytest.approx(learned(known, count, moves))
        assert all(p.reach == pytest.approx(known[p.history]) for p in book.positions)


COUNTS = st.integers(0, 60) | st.integers(0, 3)
MATCHES = st.tuples(COUNTS, COUNTS, COUNTS).filter(any).map(lambda counts: MatchStatistics(*counts))
ELOS = st.just(0.0) | st.floats(-250.0, 250.0)


def elo_of(score):
    return -400.0 * math.log10(1.0 / score - 1.0)


def score_of(elo):
    return 1.0 / (1.0 + 10.0 ** (-elo / 400.0))


# -- statistics: known values --------------------------------------------------------------------------------


def test_differences_errors_and_likelihood_ratios_are_those_that_were_published():
    for wins, draws, losses, elo, error in (
        # What cutechess-cli printed: logs of OopsMate, archive/data/results/v16_lazysmp.md.
        (99, 104, 97, 2.3, 31.8),
        (45, 18, 37, 27.9, 62.4),
        # Wordfish, ijccrl.com, August 2025.
        (1571, 1981, 1448, 8.5, 7.5),
        (3225, 3707, 3068, 5.5, 5.4),
    ):
        found = MatchStatistics(wins, draws, losses)
        low, high = found.elo_interval
        assert found.elo == pytest.approx(elo, abs=0.06)
        # There, half the distance of what the ends of the score's interval become.
        assert (high - low) / 2 == pytest.approx(error, rel=0.01, abs=0.06)
    # fastchess, app/tests/sprt_test.cpp.
    assert MatchStatistics(21404, 40708, 21184).llr(0.5, 2.5) == pytest.approx(-1.57, abs=0.0051)
    assert MatchStatistics(57433, 106593, 57030).llr(0.0, 2.0) == pytest.approx(-2.59, abs=0.0051)


# -- statistics: formulas, and brute force -------------------------------------------------------------------


@examples(400)
@given(MATCHES)
def test_formulas_written_out(found):
    shares, results = np.array((found.losses, found.draws, found.wins)) / found.games, np.array((0, 0.5, 1))
    score, (low, high) = float(shares @ results), found.elo_interval
    assert found.score == pytest.approx(score)
    if shares.max() == 1.0:
        assert low <= found.elo <= high and low < high
        assert math.isinf(found.elo) == (score in (0.0, 1.0))
        return
    error = math.sqrt((float(shares @ results**2) - score**2) / found.games)
    half = stats.norm.ppf(0.975) * error * (elo_of(score + 1e-6) - elo_of(score - 1e-6)) / 2e-6
    assert found.elo == pytest.approx(elo_of(score))
    assert (low, high) == pytest.approx((elo_of(score) - half, elo_of(score) + half), rel=1e-4, abs=1e-6)


def likelihood(found, elo):
    """Return the greatest logarithm under the hypothesis: its score leaves the share of draws free."""
    score, counts = score_of(elo), np.array((found.losses, found.draws, found.wins))
    most = 2.0 * min(score, 1.0 - score)

    def less(drawn):
        odds = np.array((1.0 - score - drawn / 2, drawn, score - drawn / 2))
        return -float(counts @ np.log(np.maximum(odds, 1e-300)))

    best = optimize.minimize_scalar(less, bounds=(0.0, most), method="bounded", options={"xatol": 1e-12})
    return -min(best.fun, less(0.0), less(most))


@examples(400)
@given(MATCHES, ELOS, ELOS)
def test_likelihood_ratios_by_brute_force_and_from_their_view(found, elo0, elo1):
    """Also of results that were never seen: if all games are lost, the likeliest wins are the fewest."""
    expected = likelihood(found, elo1) - likelihood(found, elo0)
    assert found.llr(elo0, elo1) == pytest.approx(expected, abs=1e-5)
    other = MatchStatistics(found.losses, found.draws, found.wins)
    assert other.llr(-elo0, -elo1) == pytest.approx(found.llr(elo0, elo1), abs=1e-9)
    assert other.llr(-elo1, -elo0) == pytest.approx(-expected, abs=1e-5)
    assert other.elo == pytest.approx(-found.elo)
    assert other.elo_interval == pytest.approx((-found.elo_interval[1], -found.elo_interval[0]))


def test_a_match_is_counted_and_has_a_line():
    scores = [1, 0.5, 0, 1, 0.5, 0.5, 1, 1, 0, 0.5]
    assert MatchStatistics.of_scores(scores) == MatchStatistics(4, 4, 2)
    assert MatchStatistics.of_scores(np.array(scores)).score == 0.6
    assert str(MatchStatistics(0, 10, 0)).startswith("+0 (95 %: -")
    won = str(MatchStatistics(9, 0, 0))
    assert won.startswith("+inf (95 %: +") and "to +inf), 9 won" in won
    with pytest.raises(ValueError, match="expected at least one game, got none"):
        MatchStatistics(0, 0, 0)


@examples(80)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.25, 0.4]), st.floats(5.0, 100.0))
def test_a_test_ends_with_the_game_that_reaches_a_bound(seed, won, elo1):
    scores = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], 400, p=[0.5 - won, 0.5, won])
    found = sprt(scores, 0.0, elo1)
    at = found.games
    whole = MatchStatistics.of_scores(scores[:at]).llr(0.0, elo1)
    before = MatchStatistics.of_scores(scores[: at - 1]).llr(0.0, elo1)
    assert found.llr == pytest.approx(whole) and abs(before) < math.log(19.0)
    assert at == 400 or abs(whole) >= math.log(19.0)
    reached = "H0 accepted" if whole < 0.0 else "H1 accepted"
    assert found.verdict == ("goes on" if abs(whole) < math.log(19.0) else reached)


def test_wrong_tests_are_refused_before_any_work(tmp_path, capsys):
    for flag, expected in (
        ("0,5,normalized", "--sprt: expected two Elo differences, such as 0,5, got '0,5,normalized'"),
        ("0,x", "--sprt: expected two Elo differences"),
        ("5,0", "--sprt: expected elo1 to be greater than elo0, 5, got 0"),
        ("0,nan", "--sprt: expected elo1 to be"),
    ):
        assert main(["precomp-games", "match", f"--sprt={flag}", f"--output_dir={tmp_path}/out"]) == 1
        assert expected in capsys.readouterr().err and not (tmp_path / "out").exists()
