"""Counts and what they predict: by hand, by their limits, and by a plain loop over games."""

import math
import pickle
from pathlib import Path

import chess
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precomp_games.chess import ChessGame, action_of, games_policy
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.move_counts import (
    CountsPolicy,
    GameSelection,
    GameTable,
    GameWeights,
    MoveCounts,
    predicted_rows,
)
from precomp_games.chess.model.count_fit import RollingCounts
from precomp_games.chess.model.opponents import rolling_fit
from tests.oracles.pgn import game

GAME = ChessGame()


def after(*moves: str):
    """Return the state and the board after moves in SAN."""
    state = GAME.new_initial_state()
    for san in moves:
        state.apply_action(action_of(state.board.parse_san(san)))
    return state


def by_san(state, row) -> dict[str, float]:
    return {state.board.san(chess.Move(a % 64, a // 64 % 64)): p for a, p in row.items()}


def table_of(tmp_path: Path, *texts: str, player: str | None = None, **options) -> GameTable:
    path = tmp_path / "games.pgn"
    path.write_text("".join(texts))
    return GameSelection(str(path), player, **options).table()


GAMES = (
    game("1. d4 Nf6 2. c4 e6 3. Nf3", "A", "B", Date="2000.??.??"),
    game("1. c4 e6 (1... e5) 2. d4 Nf6 3. Nc3 {transposed}", "A", "C", Date="2002.??.??"),
    game("1. d4 Nf6 2. c4 e6 3. Nc3", "B", "A", Date="2004.??.??"),
    game("1. e4 Ke4", "A", "B", Date="2004.??.??"),
    game("1. e4 e5", "A", "B", Variant="Atomic"),
)


def test_counts_by_hand(tmp_path: Path) -> None:
    """Transpositions are one position; a player's own moves alone; a variation counts nothing."""
    start, met = after(), after("d4", "Nf6", "c4", "e6")
    everyone = MoveCounts.of_tables([table_of(tmp_path, *GAMES)])
    assert by_san(start, everyone.at(start.board)) == {"d4": 2.0, "c4": 1.0, "e4": 1.0}
    assert by_san(met, everyone.at(met.board)) == {"Nf3": 1.0, "Nc3": 2.0}
    assert everyone.at(after("e4").board) == {}
    own = MoveCounts.of_tables([table_of(tmp_path, *GAMES, player="A")])
    assert by_san(start, own.at(start.board)) == {"d4": 1.0, "c4": 1.0, "e4": 1.0}
    assert by_san(met, own.at(met.board)) == {"Nf3": 1.0, "Nc3": 1.0}
    assert by_san(after("d4"), own.at(after("d4").board)) == {"Nf6": 1.0}
    aged = MoveCounts.of_tables([table_of(tmp_path, *GAMES)], GameWeights(half_life=2.0))
    weights = by_san(met, aged.at(met.board))
    assert weights == {"Nf3": pytest.approx(0.25, abs=1e-15), "Nc3": pytest.approx(1.5, abs=1e-15)}
    later = MoveCounts.of_tables([table_of(tmp_path, *GAMES)], GameWeights(half_life=2.0, as_of=2003.0))
    weights = by_san(met, later.at(met.board))  # of a game that is newer, the age is none
    assert weights["Nc3"] == pytest.approx(2**-0.25 + 1.0) and weights["Nf3"] == pytest.approx(2**-1.25)


def test_weights_by_rating_and_speed(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        game("1. e4 e5", WhiteElo="2500", BlackElo="2600", TimeControl="60"),
        game("1. d4 d5", TimeControl="600+5"),
        game("1. c4 c5", Date="1999.01.01"),
    )
    start, reply = after(), after("e4")

    def at(state, **options):
        return by_san(state, MoveCounts.of_tables([table], GameWeights(**options)).at(state.board))

    assert at(start, rating=2700, rating_scale=100.0) == {"e4": 0.25, "d4": 1.0, "c4": 1.0}
    assert at(reply, rating=2700) == {"e5": 0.5}
    assert at(start, speed="rapid", other_speeds=0.5) == {"e4": 0.5, "d4": 1.0, "c4": 1.0}
    assert at(start, speed="rapid") == {"d4": 1.0, "c4": 1.0}
    assert at(start, half_life=1.0) == pytest.approx({"c4": 1.0})  # the others have no date


def test_batches_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from precomp_games.chess.data import move_counts

    whole = table_of(tmp_path, *GAMES)
    parts = [whole.select(np.arange(whole.num_games) == k) for k in range(whole.num_games)]
    monkeypatch.setattr(move_counts, "_ROWS", 3)
    for weights in (None, GameWeights(half_life=3.0)):
        one, many = MoveCounts.of_tables([whole], weights), MoveCounts.of_tables(parts, weights)
        assert (one.keys == many.keys).all() and (one.actions == many.actions).all()
        assert one.weights == pytest.approx(many.weights, rel=1e-14)
    joined = GameTable.join(parts)
    assert all((getattr(joined, n) == getattr(whole, n)).all() for n in ("keys", "actions", "game", "own"))
    assert whole.ply.tolist() == [0, 1, 2, 3, 4] * 3 + [0]


def test_limits_of_alpha(tmp_path: Path) -> None:
    """At infinity the prior, at 0 the frequencies, to 1e-12; the prior where nothing was played."""
    counts = MoveCounts.of_tables([table_of(tmp_path, *GAMES)])
    prior = CountsPolicy(GAME, counts, 3.0)
    states = [after(), after("d4", "Nf6", "c4", "e6"), after("e4"), after("a3", "a6")]
    for state in states:
        weights = counts.at(state.board)
        expected = prior.action_probabilities(state)
        assert CountsPolicy(GAME, counts, math.inf, prior).action_probabilities(state) == expected
        row = CountsPolicy(GAME, counts, 1e15, prior).action_probabilities(state)
        assert row == pytest.approx(expected, abs=1e-12)
        row = CountsPolicy(GAME, counts, 0.0, prior).action_probabilities(state)
        total = sum(weights.values())
        assert row == pytest.approx({a: w / total for a, w in weights.items()} or expected, abs=1e-12)
    uniform = CountsPolicy(GAME, counts, math.inf).action_probabilities(after())
    assert uniform == pytest.approx(dict.fromkeys(after().legal_actions(), 1 / 20))


def test_the_formula(tmp_path: Path) -> None:
    counts = MoveCounts.of_tables([table_of(tmp_path, *GAMES)])
    state = after()
    e4, d4, c4, a3 = (action_of(chess.Move.from_uci(m)) for m in ("e2e4", "d2d4", "c2c4", "a2a3"))
    prior = {a3: 0.75, d4: 0.25}
    row = CountsPolicy(GAME, counts, 2.0, lambda _: prior).action_probabilities(state)
    assert row == pytest.approx({d4: 2.5 / 6, c4: 1 / 6, e4: 1 / 6, a3: 1.5 / 6}, abs=1e-15)

    class Odd:
        def at(self, board):
            return {d4: 6.0, 7: 5.0}  # 7 is no legal action

    row = CountsPolicy(GAME, Odd(), 2.0, lambda _: prior).action_probabilities(state)
    assert row == pytest.approx({d4: 6.5 / 8, a3: 1.5 / 8}, abs=1e-15)


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(st.sampled_from(after().legal_actions()), st.floats(1e-6, 1e6), max_size=20),
    st.floats(0.0, 1e9),
)
@example({}, 5e-324)
@example({}, 0.0)
def test_rows_are_distributions(weights, alpha: float) -> None:
    class Source:
        def at(self, board):
            return weights

    row = CountsPolicy(GAME, Source(), alpha).action_probabilities(after())
    assert math.fsum(row.values()) == pytest.approx(1.0) and min(row.values()) >= 0.0
    assert set(row) <= set(after().legal_actions())


# -- rolling -----------------------------------------------------------------------------------------------


def random_games(seed: int, count: int = 40) -> list[str]:
    """Games of a few plies by a player whose taste changes."""
    rng, texts = np.random.default_rng(seed), []
    for _ in range(count):
        year, board, sans = int(rng.integers(1980, 1988)), chess.Board(), []
        for _ in range(int(rng.integers(1, 5))):
            moves = sorted(board.legal_moves, key=lambda move: move.uci())[: 2 + year % 3]
            move = moves[int(rng.integers(len(moves)))]
            sans.append(board.san(move))
            board.push(move)
        white, black = ("A", "B") if rng.random() < 0.5 else ("B", "A")
        texts.append(game(" ".join(sans), white, black, Date=f"{year}.{int(rng.integers(1, 13)):02}.15"))
    return texts


@pytest.mark.parametrize("seed", range(3))
def test_rolling_is_a_policy_for_each_month(tmp_path: Path, seed: int) -> None:
    """The same probabilities as those of a policy that has only the months before."""
    table = table_of(tmp_path, *random_games(seed), player="A")
    half_life, alpha = 2.0, 0.7
    rolling = RollingCounts(table)
    legal = predicted_rows(CountsPolicy(GAME, MoveCounts.of_tables([])), table)
    played = table.actions[table.own].tolist()
    prior = np.array([row[action] for row, action in zip(legal, played, strict=True)])
    found = rolling.probabilities(half_life, alpha, prior)
    expected = np.zeros(len(found))
    months = np.floor(12 * table.years)
    for month in np.unique(months):
        weights = GameWeights(half_life=half_life, as_of=month / 12)
        counts = MoveCounts.of_tables([table.select(months < month)], weights)
        rows = predicted_rows(CountsPolicy(GAME, counts, alpha), table)
        here = months[table.game[table.own]] == month
        expected[here] = [rows[k][played[k]] for k in np.flatnonzero(here)]
    assert found == pytest.approx(expected, abs=1e-12)


def test_rare_positions_are_left_to_the_prior(tmp_path: Path) -> None:
    path = tmp_path / "games.pgn"
    lines = ["1. e4 e5 2. Nf3", "1. e4 e5 2. Nf3", "1. e4 c5 2. c3", "1. d4"]
    path.write_text("".join(game(f"{line} {{{k}}}", "A", "B", Round=str(k)) for k, line in enumerate(lines)))
    every, some = (games_policy(GAME, path, "A", alpha=1.0, least=least) for least in (1, 2))
    prior = CountsPolicy(GAME, MoveCounts.of_tables([]))
    for state, kept in ((after(), True), (after("e4", "e5"), True), (after("e4", "c5"), False)):
        expected = every if kept else prior
        assert some.action_probabilities(state) == pytest.approx(expected.action_probabilities(state))
    rare = after("e4", "c5")
    assert every.action_probabilities(rare) != some.action_probabilities(rare)
    again = games_policy(GAME, path, "A", alpha=1.0, least=5)
    assert again.action_probabilities(after()) == pytest.approx(prior.action_probabilities(after()))
    assert ",least=5," in again.spec("uniform") and "least" not in every.spec("uniform")


def test_a_fit_is_no_worse_than_the_grid_and_knows_no_later_games(tmp_path: Path) -> None:
    texts = random_games(5, 60)
    table = table_of(tmp_path, *texts, player="A")
    rolling = RollingCounts(table)
    prior = np.full(len(rolling.years), 0.05)
    early = rolling.years < 1985
    (fit,) = rolling.fits(prior, [1985.0])
    assert fit.moves == early.sum()
    for half_life in (0.5, 4.0, math.inf):
        for alpha in (0.05, 1.0, 10.0):
            p = rolling.probabilities(half_life, alpha, prior)[early]
            assert fit.bits <= -np.log2(p).mean() + 1e-12
    p = rolling.probabilities(fit.half_life, fit.alpha, prior)[early]
    assert fit.bits == pytest.approx(-np.log2(p).mean())
    before = table.select(table.years < 1985)
    alone = RollingCounts(before)
    assert alone.fits(np.full(len(alone.years), 0.05), [math.inf]) == [fit]
    assert rolling.fits(prior, [1984.0, 1985.0])[1] == fit
    assert rolling.fits(prior, [1985.0], [4.0])[0].half_life == 4.0


def test_fits_find_what_made_the_games(tmp_path: Path) -> None:
    """Recent games predict a player who changed its first move for good; all games, one who did not."""
    fickle = [game("1. e4" if y % 32 < 16 else "1. d4", Date=f"{1900 + y}.??.??") for y in range(64)]
    half_life = rolling_fit(table_of(tmp_path, *fickle), before=1990.0).half_life
    assert half_life < 4.0
    moves = ("1. e4", "1. e4", "1. d4", "1. c4", "1. e4", "1. d4")
    steady = [game(moves[(y * 7) % 6], Date=f"{1900 + y}.??.??") for y in range(90)]
    assert rolling_fit(table_of(tmp_path, *steady)).half_life > 16.0


def test_policy_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "games.pgn"
    path.write_text("".join(random_games(2, 80)))
    policy = games_policy(GAME, path, "A", fit="rolling")
    assert policy.fit is not None and policy.alpha == policy.fit.alpha
    assert policy.weights.half_life == policy.fit.half_life
    assert f"{policy.fit.bits:.3f} bits" in str(policy) and "games" in str(policy)
    again = pickle.loads(pickle.dumps(policy))
    states = [after(), after("a3"), after("a3", "a6")]
    assert again.action_probabilities_batch(states) == policy.action_probabilities_batch(states)
    assert policy.action_probabilities_batch(states)[1] == policy.action_probabilities(states[1], 1)
    path.write_text(game("", "A", "B"))
    with pytest.raises(ValueError, match=r"games_policy\(\): expected games in .*no moves"):
        games_policy(GAME, path)


def test_games_that_went_on_after_the_end(tmp_path: Path) -> None:
    shuffle = "Nf3 Nf6 Ng1 Ng8 "
    table = table_of(tmp_path, game(shuffle * 5 + "e4"), max_plies=30)
    counts = MoveCounts.of_tables([table])
    assert counts.at(chess.Board()) == {
        action_of(chess.Move.from_uci("g1f3")): 5.0,
        action_of(chess.Move.from_uci("e2e4")): 1.0,
    }
    assert len(predicted_rows(CountsPolicy(GAME, counts), table)) == 21
    assert int(table.keys[0]) == position_hash(chess.Board())
