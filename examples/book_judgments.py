"""What examples that judge a book share: the book and its opponent by flags, tables, and what is written."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess
import chess_runs
from absl import flags

from precomp_games import HistoryTree
from precomp_games.algorithms import BookJudgment, judge_book
from precomp_games.chess import (
    KNOWN,
    KnownEntries,
    PreparationPolicies,
    PreparationSettings,
    Repertoire,
    known_entries,
    load_calibration,
    move_of,
    preparation_tree,
    read_repertoire,
    repertoire_policies,
)
from precomp_games.commands._files import DATA, shown_path

FLAGS = flags.FLAGS
_BOOK = flags.DEFINE_multi_string(
    "book", [], "Your book, PGN or Polyglot (.bin); may be repeated. Default: a shipped sample."
)
_SIDE = flags.DEFINE_enum("side", "white", ["white", "black"], "Whose book it is.")
_R = flags.DEFINE_float(
    "r", 10.0, "Randomness of the opponent's engine, in centipawns, where --opponent names none.", 1e-9
)
_KNOWN = flags.DEFINE_enum(
    "known",
    "positions",
    list(KNOWN),
    "What you know: each position of the book, whatever moves led to it, or its lines alone.",
)
_HORIZON = flags.DEFINE_integer(
    "horizon",
    None,
    "How many half-moves the analyst's books may be long. Default: one more than your longest line.",
    lower_bound=1,
)
_LEARN = flags.DEFINE_integer("learn", 10, "How many positions to learn next.", lower_bound=0)
_ROWS = flags.DEFINE_integer("rows", 10, "Rows of each table that are printed.", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/judge_book", "Where files go.")
chess_runs.define_export_store_flag()
common.define_chess_flags()
chess_runs.define_opponent_flag()
chess_runs.define_menu_flags(1, "With more, the analyst's books grow quickly.")
FLAGS.set_default("evaluation", "calibrated")
FLAGS.set_default("penalty", 1e-3)


@dataclasses.dataclass(frozen=True)
class Judged:
    """A book on its tree, and what is said of it."""

    book: Repertoire
    tree: HistoryTree
    known: KnownEntries
    judgment: BookJudgment


def my_book() -> Repertoire:
    """The book of the flags."""
    side = chess.WHITE if _SIDE.value == "white" else chess.BLACK
    if side == chess.BLACK and not _BOOK.value:
        raise ValueError("--book: expected your book for Black, got none; the sample is one for White")
    paths = _BOOK.value or [shown_path(DATA / "repertoire_sample.pgn")]
    with common.told_as("book", "PGN or Polyglot files"):
        return read_repertoire(paths, side, fen=FLAGS.fen)


def my_settings(book: Repertoire) -> PreparationSettings:
    """The settings of the flags; a wrong one is told before an engine is started."""
    if FLAGS.evaluation == "rollouts" or FLAGS.menu < 1:
        flag = "evaluation" if FLAGS.evaluation == "rollouts" else "menu"
        wanted = "an engine's evaluation" if flag == "evaluation" else "at least 1"
        raise ValueError(f"--{flag}: expected {wanted} for a book to be judged, got {FLAGS[flag].value!r}")
    sample = not (_BOOK.value or FLAGS.opponent or FLAGS["r"].present)
    calibration = FLAGS.calibration
    if (sample or FLAGS.opponent) and not FLAGS["calibration"].present:
        calibration = "people"  # most of those who have a name
    lines = FLAGS.menu
    if FLAGS.evaluation == "calibrated":
        # The analyst's searches are those of the fit, however few of its moves there are to choose among.
        lines = max(lines, load_calibration(calibration or None).made_for.multipv)
    settings = dataclasses.replace(
        chess_runs.settings(book.player, _R.value, evaluated=True, menu=(lines, FLAGS.menu_window_cp)),
        calibration=calibration,
    )
    if sample:
        games = shown_path(DATA / "karpov_sample.pgn")
        named = f"games(file={games},player=Karpov Anatoli,prior=uci(r=20,top_k=2))"
        settings = dataclasses.replace(settings, opponent=named)
    return settings


@dataclasses.dataclass(frozen=True)
class Session:
    """A run in which a book is judged.

    Attributes:
      book: the book.
      settings: by what it is judged.
      engines: whose searches.
      folder: where files go.
      needed: the store's keys of all that is asked for.
    """

    book: Repertoire
    settings: PreparationSettings
    engines: chess_runs.Engines
    folder: pathlib.Path
    needed: set[tuple[str, str, int, str]]

    @property
    def opponent(self) -> str:
        """The opponent, in words."""
        return self.settings.opponent_name(self.engines.opponent.engine_id)

    def policies(self) -> PreparationPolicies:
        """Both sides' play; where the evaluation was fitted to something else, that is told."""
        for line in self.engines.misfits(self.settings):
            print(line, flush=True)
        return self.engines.policies(self.settings)

    def judged(self, policies: PreparationPolicies, description: str = "Searching") -> Judged:
        """Judges the book against the opponent of some policies."""
        book, horizon = self.book, _HORIZON.value or self.book.longest + 1
        with self.engines.progress(description) as progress:
            tree = preparation_tree(
                self.settings,
                self.engines.analyst,
                self.engines.opponent,
                progress,
                policies=repertoire_policies(policies, book, horizon, FLAGS.menu),
                truncate="reach",
            )
        found = known_entries(tree, book, _KNOWN.value)
        judgment = judge_book(
            tree, book.player, found.memorization_set, own_entries=found.own_entries, learn=_LEARN.value
        )
        return Judged(book, tree, found, judgment)

    def write(
        self, run: Mapping[str, Any], said: Mapping[str, Any], tables: Mapping[str, list[dict[str, Any]]]
    ) -> None:
        """Writes result.json, with the tables, and a CSV file of each table that has rows; exports the store.

        Args:
          run: what result.json has of how the book was judged, besides the settings.
          said: what it has of the book.
          tables: rows by name.
        """
        result = {
            "settings": self.settings.as_dict(),
            "analyst": self.engines.analyst.engine_id,
            "opponent": self.opponent,
            **run,
            "score": self.settings.kind.score_name,
            **said,
        }
        common.write_json(self.folder / "result.json", {**result, **tables})
        written = ["result.json"]
        for name, rows in tables.items():
            path = self.folder / f"{name}.csv"
            if rows:
                common.write_csv(path, rows)
                written.append(path.name)
            else:
                path.unlink(missing_ok=True)  # of an earlier run
        note = self.settings.kind.note()
        print(f"\n{note}Written: {self.folder}/{', '.join(written)}")
        if FLAGS.export_store:
            self.engines.export(FLAGS.export_store, self.needed)


@contextlib.contextmanager
def session(book: Repertoire, settings: PreparationSettings) -> Iterator[Session]:
    """The folder and the engines of the flags."""
    folder = common.output_folder(_OUTPUT_DIR.value)
    with chess_runs.engines() as engines:
        yield Session(book, settings, engines, folder, engines.start_record())


def line_of(board: chess.Board, moves: Sequence[chess.Move]) -> str:
    """Moves from a start position, numbered."""
    return board.variation_san(moves) or "(start)"


def describe(judged: Judged, infoset: int, entry: int) -> tuple[str, str]:
    """(the line to an information state, the move of an entry there)."""
    tree = judged.tree
    history = int(tree.infoset_history[infoset])
    (action,) = tree.memorized_row(entry)
    board = tree.state(history).board
    moves = [move_of(a) for a in tree.actions(history)]
    return line_of(judged.book.start, moves), board.san(move_of(action))


def _entry(judged: Judged, entry: int) -> tuple[str, str]:
    return describe(judged, int(judged.tree.entry_infoset[entry]), entry)


def position_rows(judged: Judged) -> list[dict[str, Any]]:
    """What is said of each position of the book."""
    found, rows = judged.judgment, []
    rank = {entry: k + 1 for k, entry in enumerate(found.drop_order.tolist())}
    for k, entry in enumerate(found.memorization_set.tolist()):
        after, play = _entry(judged, entry)
        better = int(found.better[k])
        rows.append(
            {
                "after": after,
                "play": play,
                "reach": float(found.reach[k]),
                "gain": float(found.gain[k]),
                "forgetting": float(found.forgetting[k]),
                "drop": rank[entry],
                "threshold": float(found.threshold[k]),
                "loss": float(found.loss[k]),
                "better": _entry(judged, better)[1] if better >= 0 else "",
            }
        )
    return rows


def lesson_rows(judged: Judged) -> list[dict[str, Any]]:
    """What to learn next."""
    rows = []
    for entry, gain, net_gain in zip(*(each.tolist() for each in judged.judgment.lessons), strict=True):
        after, play = _entry(judged, entry)
        rows.append({"after": after, "play": play, "gain": gain, "with_what_follows": net_gain})
    return rows


def hole_rows(judged: Judged) -> list[dict[str, Any]]:
    """Replies without an answer."""
    rows = []
    columns = (each.tolist() for each in judged.judgment.holes)
    for infoset, reach, cost, answer in zip(*columns, strict=True):
        after, play = describe(judged, infoset, answer)
        rows.append({"after": after, "answer": play, "reach": reach, "cost": cost})
    return rows


def not_met_rows(judged: Judged) -> list[dict[str, Any]]:
    """The book's positions that games do not come to, in the order of its files."""
    book, rows = judged.book, []
    for epd, position in book.positions.items():
        if epd not in judged.known.met:
            board = chess.Board(f"{epd} 0 1")
            rows.append(
                {
                    "after": line_of(book.start, position.history),
                    "play": board.san(position.moves[0]),
                    "because": "the opponent" if epd in book.playable else "the book's own first choices",
                    "source": position.source,
                }
            )
    return rows


def print_rows(title: str, rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> None:
    """A table of the first rows, with its columns' names by their keys; the line stands last."""
    if not rows:
        return
    more = f" ({_ROWS.value} of {len(rows)})" if len(rows) > _ROWS.value else ""
    print(f"\n{title}{more}:")
    shown = [
        [f"{100 * row[key]:.1f}%" if key == "reach" else row[key] for key in columns] + [_end(row["after"])]
        for row in rows[: _ROWS.value]
    ]
    common.print_table(shown, [*columns.values(), "after"])


def _end(line: str) -> str:
    return line if len(line) <= 80 else f"... {line[-76:].partition(' ')[2]}"


def print_summary(judged: Judged, settings: PreparationSettings) -> None:
    """What the book is worth."""
    found, book = judged.judgment, judged.book
    best, score = found.best, settings.kind.score_name
    print(
        f"{'Met':<20}{len(judged.known.met)} of {len(book)} positions, by {found.size} orders of moves, "
        f"each in a share of {settings.penalty:g} of games or more\n"
        f"{score:<20}{found.unprepared:.4f} unprepared, {found.utility:.4f} with the book\n"
        f"{'Best of its size':<20}{best.utility:.4f}: regret {found.regret:.4f}"
        + (f", and up to {best.truncation_loss:.4f} more by rarer lines" if best.truncation_loss > 0 else "")
        + f"\n{'Best of its moves':<20}{found.own_utility:.4f}: regret {found.own_regret:.4f}, with "
        f"{len(found.own_set)} positions"
    )


def print_tables(judged: Judged, settings: PreparationSettings) -> dict[str, list[dict[str, Any]]]:
    """Prints what is said of positions; the rows of all tables."""
    positions, lessons = position_rows(judged), lesson_rows(judged)
    holes, not_met = hole_rows(judged), not_met_rows(judged)
    print_rows(
        "What forgetting a position, and all of the book behind it, costs",
        sorted(positions, key=lambda row: -row["forgetting"]),
        {"forgetting": "costs", "reach": "reach", "play": "play"},
    )
    print_rows(
        "What to drop first (below 0, the book is better without it)",
        sorted(positions, key=lambda row: row["drop"]),
        {"threshold": "a position is worth", "reach": "reach", "play": "play"},
    )
    print_rows(
        "What to learn next, the best ones together, in this order",
        lessons,
        {"gain": "adds", "with_what_follows": "with what follows", "play": "play"},
    )
    print_rows(
        f"Replies without an answer, by what they cost (less {settings.penalty:g} a position to learn)",
        [row for row in holes if row["cost"] > 0.0],
        {"cost": "costs", "reach": "reach", "answer": "answer"},
    )
    print_rows(
        "Moves that lose against the analyst's",
        sorted((row for row in positions if row["loss"] > 0.0), key=lambda row: -row["loss"]),
        {"loss": "loses", "reach": "reach", "play": "play", "better": "better"},
    )
    print_rows(
        "Positions that this opponent hardly lets you reach",
        [row for row in not_met if row["because"] == "the opponent"],
        {"play": "play", "source": "from"},
    )
    behind = sum(row["because"] != "the opponent" for row in not_met)
    if behind:
        print(f"\n{behind} more positions are behind moves that are second choices of the book itself.")
    return {"positions": positions, "learn": lessons, "holes": holes, "not_met": not_met}


def report_dict(judged: Judged) -> dict[str, Any]:
    """What is said of the book as a whole, for result.json."""
    found, report = judged.judgment, judged.book.report
    counts = ("positions", "lines", "redundant", "entries", "mistakes", "transpositions", "contradictions")
    return {
        "read": {
            **{name: getattr(report, name) for name in counts},
            "games": report.games,
            "left_out": dict(report.left_out),
            "cut": dict(report.cut),
        },
        "size": found.size,
        "met": len(judged.known.met),
        "value": found.value,
        "utility": found.utility,
        "unprepared": found.unprepared,
        "best_of_its_size": found.best.utility,
        "regret": found.regret,
        "truncation_loss": found.best.truncation_loss,
        "best_of_its_moves": found.own_utility,
        "own_regret": found.own_regret,
        "best_book": [
            dict(zip(("after", "play"), _entry(judged, entry), strict=True))
            for entry in found.best.memorization_set.tolist()
        ],
        "tree": {"histories": judged.tree.num_histories, "fingerprint": judged.tree.fingerprint},
    }
