r"""Tests if books against a person hold later: fits to games up to a year, judges by the years after.

  python examples/preparation_transfer.py --games=karpov.pgn --player="Karpov Anatoli" \
      --population=championships.pgn --since=1981 --until=1995 --sizes=25,50,100,200,400 --penalty=1e-4

For each year and color: the model of `precomp-games opponent`, fitted to the games before that year,
books of several sizes (--sizes) that are best against the worst opponent around it, and controls of the same
size: the most reached positions with the analyst's first move, and its main lines. Which engines are behind
the games, and how far the model distrusts itself, is fitted once, to the games before --since. The judge is
another model: what the person played from that year on, smoothed by what its opponents played in the same
games, and by an engine with another limit (--judge_behind); stopping is valued by a deeper analyst
(--judge_nodes), by default no deeper than the one of the preparation. The rest of it took no part in the
preparation. The judge's own best book of each size shows the most that was possible.

Prints, by size, what books are worth by the judge, in what share of the person's later games they come up,
and how much better the prepared ones are than controls, with 95 % intervals: the later games are drawn anew
(bootstrap), all years and colors at once. Writes transfer.csv, result.json and transfer.png. No games are
played, so these are no expected scores: they are what a deeper search makes of the positions that the later
games make likely.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
import numpy as np
import numpy.typing as npt
import people
import sweeps
from absl import flags
from scipy import sparse

from precomp_games import algorithms, chess
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.move_counts import CountsPolicy, GameTable, MoveCounts
from precomp_games.chess.model.model import PreparationPolicies
from precomp_games.chess.plan.controls import MAIN_LINES
from precomp_games.chess.plan.prepare import distrusted_shares
from precomp_games.commands._flags import define_preparation_flags
from precomp_games.commands.prepare import preparation_settings

FLAGS = flags.FLAGS
_SINCE = flags.DEFINE_integer("since", None, "First year that is judged. Default: the last but two.")
_UNTIL = flags.DEFINE_integer("until", None, "Last year that is prepared for. Default: the last but one.")
_SIZES = flags.DEFINE_list("sizes", ["10", "25", "50"], "Positions that books may have.")
_SIDES = flags.DEFINE_list("sides", ["white", "black"], "Colors that prepare.")
_BEHIND = flags.DEFINE_string(
    "behind", people.FITTED, "What is behind the games, for the preparation: fitted, or a policy by name."
)
_HELD_OUT = flags.DEFINE_integer(
    "held_out", 1, "How many years before --since say how far the model distrusts itself.", lower_bound=1
)
_JUDGE_BEHIND = flags.DEFINE_string(
    "judge_behind", "noisy(policy=uci(nodes=4000,r=40,top_k=8),epsilon=0.2)", "The same for the judge."
)
_JUDGE_NODES = flags.DEFINE_integer("judge_nodes", 20_000, "Nodes of the judge's searches.", lower_bound=1)
_JUDGE_CALIBRATION = flags.DEFINE_string(
    "judge_calibration", "people_20000", "As --calibration, for the judge's searches."
)
_JUDGE_ALPHA = flags.DEFINE_float("judge_alpha", 1.0, "Games that the judge's back-off is worth.", 0.0)
_PLIES = flags.DEFINE_integer("plies", 30, "Half-moves of each game that count.", lower_bound=1)
_MIN_PROBABILITY = flags.DEFINE_float(
    "min_probability", 0.01, "Replies that a model finds less likely are not looked at.", 0.0, 0.5
)
_RESAMPLES = flags.DEFINE_integer("resamples", 1000, "Draws of the later games, for intervals.", 2)
_REGRET = flags.DEFINE_bool(
    "regret", True, "Whether to make the judge's own best books, which takes longest."
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/preparation_transfer", "Where files go.")
define_preparation_flags(FLAGS)
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(chess_runs)
flags.adopt_module_key_flags(people)
FLAGS.set_default("analyst_nodes", 20_000)
FLAGS.set_default("calibration", "people_20000")
FLAGS.set_default("menu", 1)
FLAGS.set_default("penalty", 1e-3)

_PREPARED, _BEST = "prepared", "the judge's own"
_CONTROLS = ("most reached", "main lines")

Weights = npt.NDArray[np.float64]


class Judge:
    """A model of a person's play from a year on, by its games from then on, with leaf values.

    A reply's probability is (n(m) + alpha q(m)) / (n + alpha), of the later games, with a back-off q that no
    preparation has seen. Which replies are looked at is settled by all later games, so that a book's games
    end in the same places however the later games are drawn; only how often changes.
    """

    def __init__(self, table: GameTable, back_off: Any, leaf_value: Any) -> None:
        """Of the games from a year on."""
        self.leaf_value = leaf_value
        counts = MoveCounts.of_tables([table])
        self.policy = CountsPolicy(
            chess.ChessGame(), counts, _JUDGE_ALPHA.value, back_off
        )  # of all its games
        self._back_off = back_off
        self._played: dict[int, list[tuple[int, int]]] = {}
        own = (column[table.own].tolist() for column in (table.keys, table.actions, table.game))
        for key, action, game in zip(*own, strict=True):
            self._played.setdefault(key, []).append((action, game))
        self.games = table.num_games
        self._rows: dict[str, list[tuple[int, int]]] = {}  # by position: (action, number of the reply)
        self.reply_prior: list[float] = []
        self.reply_games: list[list[int]] = []
        self.position_of: list[int] = []  # of each reply
        self._positions = 0

    def replies(self, states: Sequence[chess.ChessState]) -> list[list[tuple[int, int]]]:
        """Return (action, number) of the replies that are looked at in each position."""
        new = {chess.board_key(state): state for state in states if chess.board_key(state) not in self._rows}
        if new:
            asked = list(new.values())
            priors = self._back_off.action_probabilities_batch(asked)
            for (key, state), prior, row in zip(
                new.items(), priors, self.policy.action_probabilities_batch(asked), strict=True
            ):
                legal = set(state.legal_actions())
                played = [
                    each for each in self._played.get(position_hash(state.board), ()) if each[0] in legal
                ]
                kept = [a for a in prior | row if row.get(a, 0.0) >= _MIN_PROBABILITY.value]
                kept = kept or [max(row, key=row.__getitem__)]
                self._rows[key] = [(action, len(self.reply_prior) + k) for k, action in enumerate(kept)]
                for action in kept:
                    self.reply_prior.append(prior.get(action, 0.0))
                    self.reply_games.append([game for a, game in played if a == action])
                    self.position_of.append(self._positions)
                self._positions += 1
        return [self._rows[chess.board_key(state)] for state in states]

    def odds(self, weights: Weights) -> Weights:
        """Return replies' probabilities float64[replies, draws] by games' weights float64[games, draws]."""
        games = [game for each in self.reply_games for game in each]
        starts = np.cumsum([0, *(len(each) for each in self.reply_games)])
        shape = (len(self.reply_prior), self.games)
        counts = (
            sparse.csr_array((np.ones(len(games)), np.array(games, np.int64), starts), shape=shape) @ weights
        )
        plain = counts + _JUDGE_ALPHA.value * np.array(self.reply_prior)[:, None]
        total = np.zeros((self._positions, weights.shape[1]))
        np.add.at(total, self.position_of, plain)
        # Nothing was played there in this draw, and there is no back-off: as in all games.
        return np.asarray(plain / np.maximum(total[self.position_of], 1e-300))


@dataclasses.dataclass(frozen=True)
class Paths:
    """The e paths of replies by which games leave a book.

    Attributes:
        replies: the numbers of each path's replies.
        values: float64[e], what stopping there is worth to the book's side.
        moves: int64[e], how many moves of the book were played before.
    """

    replies: list[tuple[int, ...]]
    values: Weights
    moves: npt.NDArray[np.int64]

    def expected(self, odds: Weights, of: Weights) -> Weights:
        """Return float64[draws]: the expectation of float64[e]."""
        starts = np.cumsum([0, *map(len, self.replies)])
        numbers = np.array([n for path in self.replies for n in path], np.int64)
        shape = (len(self.replies), len(odds))
        paths = sparse.csr_array((np.ones(len(numbers)), numbers, starts), shape=shape)
        with np.errstate(divide="ignore"):
            reach = np.exp(paths @ np.maximum(np.log(odds), -700.0))
        return np.asarray(of @ reach)


def paths_of(book: chess.Book, settings: chess.PreparationSettings, judge: Judge) -> Paths:
    """Play a book against all replies that the judge looks at."""
    moves = {
        tuple(chess.action_of(move) for move in position.history): chess.action_of(position.moves[0].move)
        for position in book.positions
    }
    level: list[tuple[chess.ChessState, tuple[int, ...], int]] = [
        (settings.played_game().new_initial_state(), (), 0)
    ]
    ends: list[tuple[chess.ChessState, tuple[int, ...], int]] = []
    while level:
        following, asked = [], []
        for state, path, played in level:
            action = moves.get(tuple(state.history()))
            if not state.is_terminal() and state.current_player() != settings.player:
                asked.append((state, path, played))
            elif state.is_terminal() or action is None:
                ends.append((state, path, played))
            else:
                following.append((state.child(action), path, played + 1))
        rows = judge.replies([state for state, _, _ in asked])
        for (state, path, played), row in zip(asked, rows, strict=True):
            following += [(state.child(action), (*path, number), played) for action, number in row]
        level = following
    going = [state for state, _, _ in ends if not state.is_terminal()]
    estimates = iter(judge.leaf_value.evaluate_batch(going))
    white = [state.returns()[0] if state.is_terminal() else float(next(estimates)) for state, _, _ in ends]
    values = np.array(white) if settings.player == 0 else 1.0 - np.array(white)
    return Paths([path for _, path, _ in ends], values, np.array([played for _, _, played in ends], np.int64))


def hits(book: chess.Book, table: GameTable) -> Weights:
    """Return float64[games]: how many positions of the book came up in each game against the person.

    NaN in games with the person on the book's own side.
    """
    rows = ~table.own & (table.white == book.side)
    found = np.full(table.num_games, math.nan)
    found[table.game[rows]] = 0.0
    rows &= np.isin(table.keys, np.array(list(map(position_hash, book.boards)), np.uint64))
    for game, _ in set(zip(table.game[rows].tolist(), table.keys[rows].tolist(), strict=True)):
        found[game] += 1.0
    return found


@dataclasses.dataclass
class Trial:
    """The measured worth of a book of some kind and size, in a year and color.

    Attributes:
        values: float64[1 + draws], by the judge; the first by all later games as they are.
        moves: how many moves of the book are played in a game, by the judge.
        hits: float64[games]: see `hits`.
    """

    kind: str
    size: int
    year: int
    side: str
    positions: int
    values: Weights
    moves: float
    hits: Weights


def judge_of(
    settings: chess.PreparationSettings, table: GameTable, engines: chess_runs.Engines
) -> tuple[Judge, PreparationPolicies, chess.PreparationSettings]:
    """Return the judge from a year on, and what it would prepare with."""
    own = dataclasses.replace(
        settings,
        opponent="",
        distrust=0.0,
        analyst_limit=chess.SearchLimit(nodes=_JUDGE_NODES.value),
        calibration=_JUDGE_CALIBRATION.value,
    )
    policies = engines.policies(own)
    game = chess.ChessGame()
    behind = chess.opponent_policy(game, _JUDGE_BEHIND.value, engines.opponent, trusted=True)
    # What its opponents played in these games: people of the time, of whom no preparation has read.
    others = MoveCounts.of_tables([dataclasses.replace(table, own=~table.own)])
    judge = Judge(table, CountsPolicy(game, others, 1.0, behind), policies.leaf_value)
    play = common.seats(settings.player, policies.sigma[settings.player], judge.policy)
    return judge, dataclasses.replace(policies, sigma=play), own


def books_of(
    settings: chess.PreparationSettings,
    policies: PreparationPolicies,
    engines: chess_runs.Engines,
    sizes: Sequence[int],
) -> dict[tuple[str, int], chess.Book]:
    """Return the prepared books and the controls of each size."""
    control = functools.partial(chess.control_book, settings, policies)
    found = {(_PREPARED, size): book for size, book in prepared(settings, policies, engines, sizes).items()}
    for size in sizes:
        found["most reached", size] = control(positions=size)
        found["main lines", size] = control(positions=size, moves=MAIN_LINES)
    return found


def prepared(
    settings: chess.PreparationSettings,
    policies: PreparationPolicies,
    engines: chess_runs.Engines,
    sizes: Sequence[int],
) -> dict[int, chess.Book]:
    """Return the best books of each size, by these policies, which the settings may distrust."""
    player = settings.player
    tree = chess.preparation_tree(settings, engines.analyst, engines.opponent, policies=policies)
    best: list[Any]
    if settings.distrust:
        shares = distrusted_shares(tree, settings, policies.sigma[1 - player])
        best = [algorithms.robust_precomputation(tree, player, shares, budget=size) for size in sizes]
    else:
        frontier: algorithms.MemoryFrontier = algorithms.memory_frontier(tree, player)
        best = [algorithms.best_of_frontier(frontier, size) for size in sizes]
    books = [chess.preparation_book(tree, player, found.states()) for found in best]
    return dict(zip(sizes, books, strict=True))


def model_before(
    found: people.KnownPerson, first: float, engines: chess_runs.Engines
) -> tuple[str, Any, float]:
    """Return the prior's name, the prior as a policy, and the distrust, fitted to the games before a year."""
    since = first - _HELD_OUT.value
    behind, distrust = _BEHIND.value, FLAGS.distrust
    if behind == people.FITTED:
        like = found.engines_behind(engines.opponent, since)
        behind = like.spec
        print(f"{'Engines':<20}{like}", flush=True)
    policy = people.spec_policy(behind, engines.opponent, trusted=True)
    if not FLAGS["distrust"].present:
        settings = dataclasses.replace(preparation_settings(FLAGS), min_probability=_MIN_PROBABILITY.value)
        doubt = found.distrust(settings, engines, found.policy(policy, since), since, first)
        distrust = 0.0 if doubt is None else round(doubt.share, 2)
        print(f"{'Distrust':<20}{doubt or 'unknown'}", flush=True)
    return behind, policy, distrust


def trials(
    found: people.KnownPerson, years: Sequence[int], sizes: Sequence[int], engines: chess_runs.Engines
) -> list[Trial]:
    """Return all trials."""
    done: list[Trial] = []
    later_table = found.table.select(found.table.years >= years[0])
    rng = np.random.default_rng(FLAGS.seed)
    games = later_table.num_games
    draws = rng.multinomial(games, np.full(games, 1.0 / games), _RESAMPLES.value).T
    weights = np.hstack([np.ones((games, 1)), draws])
    behind, policy, distrust = model_before(found, float(years[0]), engines)
    for year in common.progress_bar(years, desc="Judging"):
        model = found.policy(policy, float(year))
        spec = found.spec(model, behind)
        engines.known[spec] = model
        late = later_table.years >= year
        table = later_table.select(late)
        for side in _SIDES.value:
            settings = dataclasses.replace(
                preparation_settings(FLAGS, side),
                opponent=spec,
                min_probability=_MIN_PROBABILITY.value,
                distrust=distrust,
            )
            judge, best_policies, best_settings = judge_of(settings, table, engines)
            books = books_of(settings, engines.policies(settings), engines, sizes)
            if _REGRET.value:
                best = prepared(best_settings, best_policies, engines, sizes)
                books |= {(_BEST, size): book for size, book in best.items()}
            books["no book", 0] = chess.Book(books[_PREPARED, sizes[0]].start, side == "white", ())
            paths = {key: paths_of(book, settings, judge) for key, book in books.items()}
            odds = judge.odds(weights[late])
            done += [
                Trial(
                    *key,
                    year,
                    side,
                    len(books[key]),
                    each.expected(odds, each.values),
                    float(each.expected(odds[:, :1], each.moves.astype(np.float64))[0]),
                    hits(books[key], table),
                )
                for key, each in paths.items()
            ]
    return done


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.output_folder(_OUTPUT_DIR.value)
    sizes = sorted(common.numbers(_SIZES, "whole numbers separated by commas", lambda n: n > 0, int))
    if set(_SIDES.value) - {"white", "black"} or not _SIDES.value:
        raise ValueError(f"--sides: expected white and black, got {','.join(_SIDES.value)!r}")
    found = people.person(_PLIES.value)
    years = judged_years(found)
    print(f"{found.name:<20}{found.report}")
    print(f"Judged              {years[0]} to {years[-1]}, each by all games from it on", flush=True)
    with chess_runs.engines() as engines:
        done = trials(found, years, sizes, engines)
        print(f"Searches            {engines.searches} new")
    rows = summarized(done, sizes)
    print_table(rows)
    common.write_csv(folder / "transfer.csv", [as_row(trial) for trial in done])
    judge = {"behind": _JUDGE_BEHIND.value, "nodes": _JUDGE_NODES.value, "alpha": _JUDGE_ALPHA.value}
    result: dict[str, Any] = {"person": found.name, "read": str(found.report), "years": years, "sizes": sizes}
    result |= {"behind": _BEHIND.value, "judge": judge, "resamples": _RESAMPLES.value, "summary": rows}
    common.write_json(folder / "result.json", result)
    plot(rows, folder / "transfer.png")
    print(f"Written: {folder}/transfer.csv, result.json, transfer.png")


def judged_years(found: people.KnownPerson) -> list[int]:
    """Return the years to prepare for: those with games, which have games before and after them."""
    known = sorted(set(found.years.tolist()))
    since = _SINCE.value if _SINCE.value is not None else known[max(-3, -len(known))]
    until = _UNTIL.value if _UNTIL.value is not None else known[max(-2, -len(known))]
    return people.years_of(found, since, until)


def summarized(done: Sequence[Trial], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return means over years and colors, by size and kind, and the lead of the prepared books."""
    at = {(t.kind, t.size, t.year, t.side): t for t in done}
    cases = sorted({(t.year, t.side) for t in done})
    nothing = np.mean([at["no book", 0, *case].values for case in cases], axis=0)
    kinds = [_PREPARED, *_CONTROLS, *([_BEST] if _REGRET.value else [])]
    rows = []
    for size in sizes:
        mine = np.array([at[_PREPARED, size, *case].values for case in cases])
        for kind in kinds:
            each = [at[kind, size, *case] for case in cases]
            theirs = np.array([trial.values for trial in each])
            mean = theirs.mean(axis=0)
            less = mine.mean(axis=0) - mean
            low, high = np.quantile(less[1:], (0.025, 0.975))
            rows.append(
                {
                    "size": size,
                    "kind": kind,
                    "positions": float(np.mean([trial.positions for trial in each])),
                    "worth": float(mean[0]),
                    "adds": float(mean[0] - nothing[0]),
                    "moves": float(np.mean([trial.moves for trial in each])),
                    "hits": float(np.nanmean(np.concatenate([trial.hits for trial in each]))),
                    "prepared_more": float(less[0]),
                    "low": float(low),
                    "high": float(high),
                    "cases_better": int((mine[:, 0] > theirs[:, 0]).sum()),
                    "cases": len(cases),
                }
            )
    return rows


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    print("\nBy the judge; beside a control, how much more the prepared book is worth (95 %):\n")
    shown = []
    for row in rows:
        more = better = ""
        if row["kind"] != _PREPARED:
            more = f"{row['prepared_more']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"
            better = f"{row['cases_better']} of {row['cases']}"
        shown.append(row | {"more": more, "better": better})
    columns = {"positions": "size", "worth": "worth", "adds": "adds", "moves": "moves:.2f"}
    columns |= {"hits": "hits:.2f", "prepared is worth more by": "more"}
    columns |= {"better in": "better", "book": "kind"}
    sweeps.print_rows(shown, columns)
    print("moves: of the book, in a game with it. hits: positions of it, in each of the later games.\n")


def as_row(trial: Trial) -> dict[str, Any]:
    """Return a trial for other programs."""
    met = trial.hits[~np.isnan(trial.hits)]
    return {name: getattr(trial, name) for name in ("year", "side", "kind", "size", "positions")} | {
        "worth": f"{trial.values[0]:.6f}",
        "moves": f"{trial.moves:.4f}",
        "hits": f"{met.mean():.4f}" if len(met) else "",
        "games": len(met),
    }


def plot(rows: Sequence[dict[str, Any]], path: pathlib.Path) -> None:
    """Plot what books add by size, and how much more the prepared ones are worth than controls."""
    with common.figure(path, 1, 2, figsize=(10.0, 4.0)) as (figure, panels):
        left, right = panels
        styles = {_PREPARED: "o-", "most reached": "s--", "main lines": "^:", _BEST: "D-."}
        for number, (kind, style) in enumerate(styles.items()):
            own = [row for row in rows if row["kind"] == kind]
            look: dict[str, Any] = {"color": f"C{number}", "ms": 4, "label": kind}
            if own:
                sweeps.curve(left, own, "size", "adds", style, **look)
            if kind in _CONTROLS:
                more = np.array([row["prepared_more"] for row in own])
                ends = np.array([[row["low"], row["high"]] for row in own]).T
                sizes = [row["size"] for row in own]
                right.errorbar(sizes, more, np.abs(ends - more), fmt=style, capsize=2, **look)
        right.axhline(0.0, color="0.6", lw=1.0)
        left.set_ylabel("what the book adds, by the judge")
        right.set_ylabel("prepared more than the control (95 %)")
        for panel in panels:
            panel.set_xscale("log")
            panel.set_xlabel("positions in the book")
            panel.set_xticks([row["size"] for row in rows], [str(row["size"]) for row in rows])
            panel.minorticks_off()
            panel.grid(alpha=0.3)
            panel.legend(frameon=False)
        figure.tight_layout()


if __name__ == "__main__":
    common.run(main)
