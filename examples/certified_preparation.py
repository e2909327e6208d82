r"""Prepares with a certificate: how good the book is at least, and how good any book could be, as it goes on.

For a game with search policies, by games played on (roll-outs): the interval holds with probability
1 - delta at every moment, and the work stops when it is narrower than epsilon.

  python examples/certified_preparation.py --game=tic_tac_toe --epsilon=0.1

For chess, by an engine's evaluations: positions are searched in the order of what they could change, and the
work stops when the gap is at most --epsilon.

  python examples/certified_preparation.py --chess --side=white --r=10 --penalty=0.001 --epsilon=0.01

Ctrl-C stops the work, and what is certain by then is written.

With --compare the whole tree is expanded as well: the exact value, and how much more work that is. Writes
result.json, interval.png and interval.svg, the interval as it narrows, and for chess book.pgn; with --report
also a page to look at the book with, report.html.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import pathlib
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import chess_runs
import common
import pyspiel
from absl import flags

from precomp_games import HistoryTree
from precomp_games.algorithms import (
    CertifiedPrecomputation,
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
)
from precomp_games.algorithms.search import default_position_key
from precomp_games.chess import (
    BookPage,
    Preparation,
    PreparationSettings,
    book_exits,
    certified_book,
    position_key,
    preparation_policies,
    preparation_tree,
    write_pgn,
    write_report,
)

FLAGS = flags.FLAGS
_CHESS = flags.DEFINE_boolean("chess", False, "Chess by an engine's evaluations, in place of --game.")
_GAME = flags.DEFINE_string("game", "tic_tac_toe", "OpenSpiel game string; perfect information.")
_SIGMA = flags.DEFINE_string(
    "sigma", "softmax(policy=alpha_beta(depth=1),temperature=0.5)", "What both players compute during play."
)
_SIGMA_PRE = flags.DEFINE_string("sigma_pre", "alpha_beta(depth=4)", "What can be memorized.")
_PRICE = flags.DEFINE_float("position_price", 0.01, "Utility that a memorized position costs in --game.")
_PLAYER = flags.DEFINE_integer("player", 0, "Who prepares in --game.", 0, 1)
_EPSILON = flags.DEFINE_float("epsilon", 0.1, "Stop when the interval is at most this wide, in utility.")
_DELTA = flags.DEFINE_float("delta", 0.05, "The probability with which roll-outs' interval may be wrong.")
_LIMIT = flags.DEFINE_integer(
    "limit", None, "Stop after so many games or evaluations; the interval is what it is then.", lower_bound=0
)
_SIDE = flags.DEFINE_enum("side", "white", ["white", "black"], "Who prepares in chess.")
_R = flags.DEFINE_float("r", 10.0, "Randomness of the opponent in chess, in centipawns.")
_REPORT = flags.DEFINE_bool("report", False, "In chess, also write a page to look at the book with.")
_BATCH = flags.DEFINE_integer("batch", 4, "Positions that are worked on at once.", lower_bound=1)
_COMPARE = flags.DEFINE_boolean(
    "compare",
    None,
    "Also expand the whole tree, and compare. Default: for --game, where it is small; minutes for --chess.",
)
flags.DEFINE_string(
    "output_dir",
    "output/certified_preparation",
    "Where files go; of another game by default beside it.",
)
common.define_chess_flags()
common.define_memory_flag()
flags.adopt_module_key_flags(common)


def main(argv: Sequence[str]) -> None:
    del argv
    if _REPORT.value and not _CHESS.value:
        raise ValueError("--report: expected --chess as well, since the page has a chess board")
    folder = common.game_folder()
    if _CHESS.value:
        by_evaluations(folder)
    else:
        by_rollouts(folder)


@dataclasses.dataclass
class Watch:
    """Whether Ctrl-C was pressed, which ends the work after the batch that is under way.

    A certificate holds as it is then, and is written before the run ends.
    """

    stopped: bool = False

    def __call__(self) -> bool:
        return self.stopped

    def stop(self, number: int, frame: Any) -> None:
        """The handler of the first Ctrl-C; the next one ends the run at once."""
        self.stopped = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Past the buffer, which the bar may be writing into just now.
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), b"\nStopping after this batch (Ctrl-C again: at once)\n")

    def end(self) -> None:
        """Ends a run that was stopped, when its files are written."""
        if self.stopped:
            raise KeyboardInterrupt("what is certain so far is written")


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """A watch over what is done within it."""
    watch = Watch()
    before = signal.signal(signal.SIGINT, watch.stop)
    try:
        yield watch
    finally:
        signal.signal(signal.SIGINT, before)


def plot(found: CertifiedPrecomputation, path: pathlib.Path) -> None:
    """The interval against the work."""
    with common.figure(path, figsize=(7.0, 4.0), page=True) as (figure, panel):
        found.plot(panel)
        figure.tight_layout()


def by_rollouts(folder: pathlib.Path) -> None:
    """A game with search policies."""
    game = common.named_game(_GAME.value)
    pre, sigma = common.policy(game, _SIGMA_PRE.value), common.policy(game, _SIGMA.value)
    key = default_position_key(game)
    with watched() as watch:
        found = certified_precomputation(
            game,
            pre,
            sigma,
            _PRICE.value,
            _PLAYER.value,
            epsilon=_EPSILON.value,
            delta=_DELTA.value,
            max_rollouts=_LIMIT.value,
            position_key=key,
            seed=FLAGS.seed,
            enough=watch,
        )
    plot(found, folder / "interval.png")
    games = found.work["rollouts"]
    tell(found, f"{games} games", watch, folder)
    watch.end()
    if _COMPARE.value is False:
        return
    player = found.player
    tree = HistoryTree.from_game(
        game,
        sigma_pre=pre,
        sigma=sigma,
        penalties=common.seats(player, _PRICE.value, math.inf),
        stop_value="evaluate",
        truncate="reach",
        position_key=key,
    )
    ended = tree.player == int(pyspiel.PlayerId.TERMINAL)
    sampled = ((tree.infoset >= 0) | (tree.num_children == 0)) & ~ended
    histories = int(sampled.sum())
    share = (tree.utility_range / _EPSILON.value) ** 2
    theorem_3 = histories * math.ceil(16.0 * share * math.log(histories / _DELTA.value))
    print(
        f"Expected            {best_precomputation(tree, player).value:.4f} by dynamic programming\n"
        f"Theorem 3           {theorem_3} games at {histories} histories, "
        f"{theorem_3 / max(games, 1):.0f} times as many"
    )


def by_evaluations(folder: pathlib.Path) -> None:
    """Chess, best first."""
    player = 0 if _SIDE.value == "white" else 1
    settings = chess_runs.settings(player, _R.value, evaluated=True)
    with chess_runs.engines() as engines:
        policies = preparation_policies(settings, engines.analyst, engines.opponent)
        needed = engines.start_record()
        with watched() as watch:
            found = best_first_precomputation(
                settings.game(),
                policies.sigma_pre,
                policies.sigma,
                settings.penalty,
                player,
                policies.leaf_value,
                gap=_EPSILON.value,
                batch=_BATCH.value,
                max_evaluations=_LIMIT.value,
                position_key=position_key,
                min_probability=settings.min_probability,
                enough=watch,
            )
        plot(found, folder / "interval.png")
        tell(found, f"{len(needed)} searches", watch, folder)
        print(f"\n{settings.kind.note()}", end="")
        book = certified_book(found)
        write_pgn(book, folder / "book.pgn", headers={"Event": "Certified preparation"})
        if book.positions:
            print(f"\nFirst lines of the book:\n{book.first_lines(5)}")
        if _REPORT.value:
            shown = reported(settings, engines, found, (folder / "interval.svg").read_text(encoding="utf-8"))
            write_report(folder / "report.html", [shown], "A certified preparation")
            print(f"\nPage: {folder}/report.html (open it in a browser)")
        watch.end()
        if _COMPARE.value:
            compare(settings, engines, found, len(needed))


def reported(
    settings: PreparationSettings, engines: chess_runs.Engines, found: CertifiedPrecomputation, interval: str
) -> BookPage:
    """What the page shows; scores are the analyst's, and the book's is the lower end of its interval."""
    book, utility = certified_book(found), found.lower + found.penalty * found.size
    policies = engines.policies(settings)
    made = Preparation(
        settings,
        book,
        engines.ids,
        utility,
        utility - float(found.gain.sum()),
        found.lower,
        found.gain.tolist(),
        exits=book_exits(
            book,
            policies.sigma[1 - settings.player],
            policies.leaf_value,
            horizon=settings.max_plies,
            min_probability=settings.min_probability,
        ),
    )
    return BookPage(made, plots={"The interval": interval})


def compare(
    settings: PreparationSettings, engines: chess_runs.Engines, found: CertifiedPrecomputation, searches: int
) -> None:
    """The searches of the whole tree, cut by bounds and by reach alone, beside those made."""
    rows = [("best first", searches, 1.0, (found.lower + found.upper) / 2.0, "middle of the interval")]
    for name, truncate in (("branch and bound", "values"), ("whole tree", "reach")):
        needed = engines.start_record()
        tree = preparation_tree(settings, engines.analyst, engines.opponent, truncate=truncate)
        best = best_precomputation(tree, settings.player)
        rows.append((name, len(needed), searches / max(len(needed), 1), best.value, f"{best.size} positions"))
    print()
    common.print_table(rows, ("way", "searches", "best first / this", "value", ""))


def tell(found: CertifiedPrecomputation, work: str, watch: Watch, folder: pathlib.Path) -> None:
    """Prints the certificate and writes result.json."""
    by = "by Ctrl-C" if watch.stopped else "at --limit"
    sure = "certain" if found.confidence == 1.0 else f"with probability {found.confidence:g}"
    print(
        f"This book           worth at least {found.lower:.4f} ({sure})\n"
        f"Any book            worth at most  {found.upper:.4f}, {found.gap:.4f} more\n"
        f"Size                {found.size} positions to learn\n"
        f"Work                {work}"
        + ("" if found.reached else f"\nStopped {by}, before the interval was as narrow as --epsilon")
    )
    common.write_json(
        folder / "result.json",
        {
            "player": found.player,
            "penalty": found.penalty,
            "lower": found.lower,
            "upper": found.upper,
            "confidence": found.confidence,
            "reached": found.reached,
            "size": found.size,
            "work": found.work,
            "histories": [list(actions) for actions in found.histories],
        },
    )


if __name__ == "__main__":
    common.run(main)
