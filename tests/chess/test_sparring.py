"""Preparation by games that were played, and the command that plays them."""

import dataclasses
import math
import shlex

import chess
import numpy as np
import pytest
import scipy.optimize

from precomp_games import chess as prep
from precomp_games.algorithms import confirmed_precomputation
from precomp_games.chess.model.calibration import expected_score, score_features
from precomp_games.chess.plan import sparring
from precomp_games.chess.play.engine_games import Clock, play_engine_games
from precomp_games.chess.play.match import play_match, write_match_pgn
from precomp_games.commands import main
from precomp_games.policies.mixtures import MixturePolicy
from tests.chess.test_engine import FAKE

REMEMBERS = shlex.join([*FAKE, "--remembers"])
ENDGAME = "8/5k2/8/8/8/8/3PK3/8 w - - 0 1"


@pytest.fixture(scope="module")
def engines():
    with prep.EvaluationStore(":memory:") as store, prep.EnginePool(FAKE) as pool:
        engine = prep.StoredEngine(store, pool)
        yield prep.Engines(engine, engine)


def settings_of(**changes):
    how = {"fen": ENDGAME, "menu": 2, "evaluation": "calibrated", "max_plies": 6, "penalty": 1e-3}
    return prep.PreparationSettings(**(how | changes))


def sparred(settings, engines, games=30, opponent=None):
    """Games without a book between the models of both sides."""
    sigma, rival = engines.policies(settings).sigma, 1 - settings.player
    book = prep.Book(settings.played_game().new_initial_state().board, settings.player == 0, ())
    return play_match(book, opponent or sigma[rival], sigma[1 - rival], games, max_plies=40)


def games_of(result, folder, name="Opponent"):
    """Return the games of a match as a file has them, with what was a book's."""
    path, book, records = folder / "games.pgn", result.book, []
    write_match_pgn(result, path, {"Black" if book.side == chess.WHITE else "White": name})
    for record, game in zip(sparring.SparringGames.read(path, name).records, result.games, strict=True):
        ours = range(0 if book.start.turn == book.side else 1, len(game.moves), 2)
        booked = frozenset(ply for ply in ours if game.left is None or ply < game.left)
        records.append(dataclasses.replace(record, booked=booked))
    return sparring.SparringGames(name, tuple(records))


# -- an opponent by its games ------------------------------------------------------------------------------


@pytest.mark.parametrize("player", [0, 1])
def test_the_model_is_counts_with_the_weight_of_one_game_behind_them(engines, player, tmp_path):
    settings = settings_of(player=player, opponent_temperature_cp=200.0, top_k=3)
    result = sparred(settings, engines)
    policy = sparring.informed_policies(settings, engines, games_of(result, tmp_path)).sigma[1 - player]
    prior = engines.policies(settings).sigma[1 - player]
    state = settings.game().new_initial_state()
    if player == 0:
        state.apply_action(prep.action_of(result.games[0].moves[0]))
    lines = [list(map(prep.action_of, game.moves)) for game in result.games]
    following = [line[state.ply] for line in lines if line[: state.ply] == state.history()]
    expected = {}
    for action, q in prior.action_probabilities(state).items():
        expected[action] = (following.count(action) + q) / (len(following) + 1)
    assert policy.action_probabilities(state) == pytest.approx(expected)


def test_who_one_of_several_is(engines, tmp_path):
    """The opponents left and their weights are Bayes' rule over all games, by products of probabilities."""
    each = [f"uci(nodes={n},r={r},top_k={k})" for n in (10, 30) for r in (50, 400) for k in (2, 3)]
    several = f"mixture({','.join(f'{letter}={one}' for letter, one in zip('abcdefgh', each, strict=True))})"
    settings = settings_of(opponent=several, trusted=True)
    model = prep.opponent_policy(settings.game(), several, engines.opponent)
    games = games_of(sparred(settings, engines, games=4, opponent=model.policies[5]), tmp_path)
    log = np.log(model.weights.copy())
    for record, _ in games.against(settings):
        state = settings.played_game().new_initial_state()
        for action in record.actions:
            if state.current_player() == 1:
                rows = [each.action_probabilities(state) for each in model.policies]
                log += [math.log(max(row.get(action, 0.0), 1e-300)) for row in rows]
            state.apply_action(action)
    weights = np.exp(log - log.max())
    likely = np.flatnonzero(weights >= 0.02)
    policy = sparring.informed_policies(settings, engines, games).sigma[1]
    assert isinstance(policy, MixturePolicy)
    assert policy.weights == pytest.approx(weights[likely] / weights[likely].sum(), rel=1e-6)
    assert 5 in likely


# -- a position by its scores ------------------------------------------------------------------------------


def test_a_promise_has_an_error_by_two_games_or_more(engines):
    settings = settings_of()
    policies = engines.policies(settings)
    problem = (settings.played_game(), policies.sigma_pre, policies.sigma, 1.0, 0, lambda _: 0.5)
    found = confirmed_precomputation(*problem, games=0, promise_games=0)
    assert math.isnan(found.standard_error) and found.interval == (0.0, 1.0)
    with pytest.raises(ValueError, match="expected promise_games to be 0 or at least 2, got 1"):
        confirmed_precomputation(*problem, promise_games=1)


def test_scores_of_games_say_what_the_analysts_are_worth(engines, tmp_path):
    """The most likely coefficients, by a search over them with the prior written out."""
    settings = settings_of()
    evaluation = engines.policies(settings).leaf_value
    games = games_of(sparred(settings, engines, games=12), tmp_path)
    taught = sparring._taught(games, settings)
    value, counted = sparring._learned(evaluation, taught)
    fitted = value.utility
    assert counted == taught  # without a clock
    root = settings.played_game().new_initial_state()
    (result,) = engines.analyst.search([root.epd], settings.analyst_limit, settings.multipv)
    features = np.array(score_features(result.lines[0], 1))  # a pawn ahead
    scores = np.array([score for _, score in taught])
    start = np.array(evaluation.utility.coefficients)

    def loss(fit):
        p = expected_score(features @ fit)[0]
        off = (fit - start) / np.array([0.7, 0.4, 0.2])
        return 0.5 * off @ off - (scores * np.log(p) + (1.0 - scores) * np.log1p(-p)).sum()

    best = scipy.optimize.minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert fitted.coefficients == pytest.approx(best.x, abs=1e-4)
    assert sparring._learned(evaluation, []) == (evaluation, [])


@pytest.mark.parametrize("player", [0, 1])
def test_a_move_of_the_book_leaves_more_time_for_later_ones(engines, player, tmp_path):
    """Twice the time adds 1 to the logit; a game counts for later turns as if it had saved time for them."""
    settings, clock = settings_of(player=player), Clock(1.0, 0.01)
    plain = engines.policies(settings).leaf_value
    evaluation = sparring._timed(plain, clock, player)
    games = games_of(sparred(settings, engines, games=3), tmp_path)
    taught = [
        (passed[1:], score) for passed, score in sparring._taught(games, settings)
    ]  # one move was a book's

    def logits(value, states):
        values = np.asarray(value.evaluate_batch(states))
        own = (values if player == 0 else 1.0 - values) - 0.005
        return np.log(own / (0.99 - own))

    passed, score = taught[0]
    gained = [math.log2(clock.time_gained(moves)) for moves in range(1, len(passed) + 1)]
    assert gained[0] > 0.0 and logits(evaluation, passed) - logits(plain, passed) == pytest.approx(gained)

    value, counted = sparring._learned(evaluation, taught)
    assert [each for each, _ in counted] == [each for each, _ in taught]
    (base,) = logits(value, passed[:1])
    later = 0.005 + 0.99 / (1.0 + np.exp(-(base + np.array(gained) - gained[0])))
    assert counted[0][1] == pytest.approx(score + later - later[0])
    # The fit explains by time what it can: it is lower than one that knows of none.
    (without,) = logits(sparring._learned(plain, taught)[0], passed[:1])
    assert base < without + gained[0]
    assert sparring._timed(plain, None, player) is plain and sparring._timed(0.5, clock, player) == 0.5


def test_where_games_are_lost_the_book_plays_something_else(engines, tmp_path):
    settings = settings_of(penalty=1e-6)
    first = sparring.prepare_from_games(settings, engines, sparring.SparringGames("them"), budget=4)
    move = first.book.positions[0].moves[0].move
    policies = engines.policies(settings)
    result = play_match(first.book, policies.sigma[1], policies.sigma[0], 40, max_plies=40)
    games = games_of(result, tmp_path)
    for record, (passed, _), game in zip(
        games.records, sparring._taught(games, settings), result.games, strict=True
    ):
        assert game.left == sparring.left_at(record, chess.WHITE) == (passed[0].ply if passed else None)
    lost = sparring.SparringGames(
        "Opponent", tuple(dataclasses.replace(r, result="0-1") for r in games.records)
    )
    now = sparring.prepare_from_games(settings, engines, lost, budget=4)
    assert now.utility < first.utility
    assert sparring.prepare_from_games(settings, engines, lost, budget=4, doubt=1.0).utility < now.utility
    lines = sparring.played_lines(lost.against(settings), settings, now.book)
    assert sum(line.games for line in lines) == 40 and {line.score for line in lines} == {0.0}
    if now.book.positions and now.book.positions[0].moves[0].move != move:
        san = now.book.start.san(now.book.positions[0].moves[0].move)
        assert {line.now for line in lines} == {f"plays 1.{san}"}
    with pytest.raises(ValueError, match="expected settings with a fitted evaluation, a menu"):
        sparring.prepare_from_games(settings_of(menu=0), engines, lost)


# -- the command -------------------------------------------------------------------------------------------

# Where the fifty moves are nearly over, games are short.
ROOK = "8/5k2/8/8/8/8/3RK3/8 w - - 92 80"


@pytest.fixture
def spar(tmp_path, monkeypatch, capsys):
    """Return a sparring of fake engines in a new folder, which gives its output and its folder."""
    monkeypatch.chdir(tmp_path)

    def run(*flags, engine=REMEMBERS, fen=ROOK, error=""):
        how = [f"--engine={engine}", f"--fen={fen}", "--max_plies=4", "--max_evaluations=10", "--menu=2"]
        status = main(["precomp-games", "spar", *how, "--output_dir=out", *flags])
        output = capsys.readouterr()
        assert (status, error in output.err) == (1 if error else 0, True), output.err
        return output.err if error else output.out

    return run


def count(path):
    return path.read_text().count("[Result ")


# Costs seconds: a sparring by engines that are Python.
def test_a_sparring_goes_on_where_it_was(spar, tmp_path):
    """By its games alone: those that are there are not played again, broken ones are left out."""
    how = ["--opponent_movetime_ms=20", "--opponent_plays=game", "--round=2"]
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "games.pgn").write_text('[Event "Sparring, round 0"]\n[Site')  # as a full disk leaves it
    output = spar(*how, "--play=1", "--last=0")
    assert "Round 0             scored" in output and "in 1 game (no book)" in output
    output = spar(*how, "--play=2", "--last=2")
    assert "in 2 games (no book)" in output and "Promise " in output and "Elo " in output
    assert "without a book" in output and "in 4 games\n" in output and "\nGain                " in output
    written = {"book.bin", "book.pgn", "result.json", "rounds.csv", "rounds.png", "last.pgn"}
    assert written <= {path.name for path in folder.iterdir()}
    assert count(folder / "without.pgn") == count(folder / "games.pgn") == 2
    assert (
        prep.Preparation.read(folder).settings.calibration == "engines"
    )  # what moves are worth under a clock
    again = spar(*how, "--play=2", "--last=2")  # there is nothing left to do
    assert again.splitlines()[-4:] == output.splitlines()[-4:]
    first = (folder / "games.pgn").read_text()
    with (folder / "games.pgn").open("a") as file:  # as a run leaves it that is killed
        file.write('[Event "Sparring, round 1"]\n[Round "1.1"]\n[White "precomp-gam')
    output = spar(*how, "--play=4", "--last=1")
    assert (folder / "games.pgn").read_text().startswith(first)
    assert "Round 0 " not in output and "Round 1 " in output and "or more expected by 4 games" in output
    counts = [count(folder / f"{name}.pgn") for name in ("last_2", "last", "without")]
    assert counts == [2, 1, 2]  # without a book they are the same with any
    spar(*how, "--side=black", error="a new folder, or games with side 'black', got out with 'white'")


def test_under_a_clock_any_move_may_come_that_is_about_as_good(spar, tmp_path, monkeypatch):
    # As if it kept limits of nodes.
    monkeypatch.setattr("precomp_games.commands.spar.engine_troubles", lambda *arguments: [])
    asked, real = [], sparring.prepare_from_games

    def watched(*arguments, **how):
        asked.append((how["clock"], how["optimism"], how["doubt"]))
        return real(*arguments, **how)

    monkeypatch.setattr("precomp_games.chess.plan.sparring.prepare_from_games", watched)
    output = spar("--clock=5+0.1", "--round=1", "--play=2", "--last=1", "--output_dir=o (1), a=b")
    assert asked == [(Clock(5.0, 0.1), 0.03, -1.0), (Clock(5.0, 0.1), 0.03, 0.6)]  # a round's, and the last
    assert "keeps no limit of nodes" not in output
    settings = prep.Preparation.read(tmp_path / "o (1), a=b").settings
    assert settings.min_probability == 1e-3
    assert "d=uci(nodes=10000,r=5,top_k=4),per=move)" in settings.opponent
    assert settings.opponent.startswith('games(file="o (1), a=b/games.pgn",')


@pytest.mark.parametrize("fault", ["no-nodes", "move-alone"])
def test_under_a_clock_an_engine_needs_no_nodes_and_no_scores(fault, spar):
    opponent = f"--opponent_engine={REMEMBERS} --fault={fault}"
    output = spar(opponent, "--clock=5+0.1", "--play=1", "--last=0")
    assert "keeps no limit of nodes" in output and "in 1 game (no book)" in output


def test_options_and_limits_reach_the_engines_that_play(spar, tmp_path, monkeypatch):
    """One without a hash is no fault. Where nothing is random, rounds and the last match are one game."""
    seen = []

    def watched(book, own, opponent, *rest, **how):
        seen.append((own, opponent))
        play_engine_games(book, own, opponent, *rest, **how)

    monkeypatch.setattr("precomp_games.commands.spar.play_engine_games", watched)
    output = spar("--play=3", "--last=5", "--engine_option=Style=Wild")
    assert "in 1 game (no book)" in output and count(tmp_path / "out" / "last.pgn") == 1
    assert all(dict(each.options) == {"Style": "Wild"} for each in seen[0])
    other = [f"--opponent_engine={REMEMBERS} --lacking=Hash", "--opponent_nodes=300", "--own_nodes=200"]
    spar(*other, "--play=1", "--last=0", "--output_dir=other")
    own, opponent = seen[-1]
    assert (str(own.limit), str(opponent.limit)) == ("nodes=200", "nodes=300")
    assert opponent.command[-1] == "--lacking=Hash" and not opponent.options


def test_games_of_another_match_program_teach_and_broken_ones_cost_themselves_alone(spar, tmp_path):
    game = (
        '[White "Ours"]\n[Black "Theirs"]\n[Result "0-1"]\n[SetUp "1"]\n'
        f'[FEN "{ENDGAME}"]\n\n1. d4 {{book}} Ke6 2. d5+ {{+0.35/12 0.52s}} Kd6 0-1\n\n'
    )
    broken = game.replace("1. d4", "1. Qh9 {book")
    (tmp_path / "match (1), a=b.pgn").write_text(f"{game}{broken}{game}")
    output = spar("--games=match (1), a=b.pgn", "--opponent_name=Theirs", fen=ENDGAME)
    assert "Games               2 games; 1 left out" in output
    assert "Scored              0.00 +- 0.00 in 2 games" in output
    assert (tmp_path / "out" / "book.bin").exists()


def test_wrong_flags_are_one_line(spar):
    calibrated = "--evaluation: expected calibrated, and a --menu of 1 or more, got linear"
    for flags, expected in (
        (["--clock=1"], "expected seconds and an increment such as '60+0.6', got '1'"),
        (["--games=none.pgn"], "--games: expected --opponent_name with it"),
        (["--games=none.pgn", "--opponent_name=x"], "--games: expected a PGN file, got 'none.pgn'"),
        (["--evaluation=linear"], calibrated),
        (["--round=0"], "--round"),
        (["--clock=1+1", "--own_nodes=5"], "--own_nodes: expected none beside --clock, got 5"),
        (["--fen=7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"], "--fen: expected a position in which the game goes on"),
    ):
        assert len(spar(*flags, "--play=0", "--last=0", error=expected).splitlines()) == 1
