r"""Prepares one side of a chess game against a person, whose games say what to expect, and writes the book.

  python examples/opponent_preparation.py --games=karpov.pgn --player="Karpov Anatoli" \
      --population=others.pgn --side=white --budget=60

The person is expected to play what it has played, recent games counting more; what others play stands behind
that, and behind them engines that err as the person does (--behind). How much each counts is what predicts
the person's later games best from its earlier ones (docs/opponents.md). Where games are few, the model
distrusts itself: the person may play what is worst for us, as far as the last year's games say (--distrust),
and the book is the best one against that. What stopping is worth is an evaluation that was fitted to how
people's games end. Without flags, on small samples that come with it, without an engine.

Prints how well the model predicts the last year, which it was not fitted to; what the book is worth against
the worst that the person may be, and by the model; how much of that hangs on positions that came up fewer
than three times; and where the person's last games meet the book. Writes the files of
examples/chess_preparation.py (book.bin, book.pgn, result.json; --report for a page, --export for files to
study with), and positions.csv.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess
import chess_runs
import numpy as np
import people
from absl import flags

from precomp_games.chess import (
    Book,
    BookPosition,
    GamesPolicy,
    Preparation,
    PreparationSettings,
    action_of,
    write_preparation,
)
from precomp_games.chess.opponents.count_fit import RollingCounts
from precomp_games.chess.opponents.distrust import DistrustFit
from precomp_games.chess.opponents.estimation import EnginesFit
from precomp_games.chess.opponents.policies import prior_of_moves
from precomp_games.chess.records.game_records import position_hash
from precomp_games.chess.records.move_counts import GameTable
from precomp_games.commands import prepare
from precomp_games.commands._memory import memory_lines
from precomp_games.commands._preparing import (
    best_book_in,
    preparation_settings,
    prepared,
    print_preparation,
)
from precomp_games.commands._showing import check_exports, write_shown

_SELDOM = 3  # games; what came up less often is told
_LEAST = 2.0**-40  # a move that a model rules out surprises it by no more than 40 bits

FLAGS = flags.FLAGS
_BEHIND = flags.DEFINE_string(
    "behind",
    people.FITTED,
    "What is behind the games: fitted, engines that err as the person did before the last games; or a policy "
    "by name, such as uniform, any move.",
)
_PLIES = flags.DEFINE_integer("plies", 30, "Half-moves of each game that count.", lower_bound=1)
_MIN_PROBABILITY = flags.DEFINE_float(
    "min_probability",
    0.01,
    "Replies that the model finds less likely are not prepared for: most are any legal move, by lapse.",
    lower_bound=0.0,
    upper_bound=0.5,
)
_LAST_YEARS = flags.DEFINE_integer("last_years", 1, "How many years the last games are.", lower_bound=1)
prepare.define(FLAGS)
flags.adopt_module_key_flags(prepare)
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(chess_runs)
flags.adopt_module_key_flags(people)
FLAGS.set_default("output_dir", "output/opponent_preparation")
FLAGS.set_default("budget", 60)
FLAGS.set_default("menu", 1)
FLAGS.set_default("penalty", 5e-4)
FLAGS.set_default("analyst_nodes", 20_000)  # the book is to see no less than those who are behind the games
FLAGS.set_default("calibration", "people_20000")
FLAGS.set_default("play_budget", 0)
FLAGS.set_default("match_games", 0)


@dataclasses.dataclass(frozen=True)
class Met:
    """How often a position of the book came up in the person's games with the other color.

    Attributes:
        games: in how many of all games.
        last: in how many of the last ones.
    """

    games: int
    last: int


def last_games(found: people.Person) -> tuple[float, GameTable]:
    """The year in which the last games begin, and these."""
    first = float(found.years.max() - _LAST_YEARS.value + 1)
    return first, found.table.select(found.table.years >= first)


def predicted(found: people.Person, model: GamesPolicy, since: float) -> tuple[float, int] | None:
    """Bits a move from a year on, fitted to the years before, and how many moves; None without such years."""
    if not (found.table.years < since).any():
        return None
    rolling = RollingCounts(found.table)
    prior = prior_of_moves(model.prior, found.table)[rolling.moves]
    (fit,) = rolling.fits(prior, [since])
    odds = rolling.probabilities(fit.half_life, fit.alpha, prior)
    late = np.array([rolling.start(block) >= since for block in rolling.block.tolist()])
    return float(-np.log2(np.maximum(odds[late], _LEAST)).mean()), int(late.sum())


def positions_of(book: Book) -> dict[int, BookPosition]:
    """A book's positions, by `position_hash`; of several lines to a position the likeliest one."""
    found: dict[int, BookPosition] = {}
    both = zip(book.positions, book.boards, strict=True)
    for position, board in sorted(both, key=lambda pair: pair[0].reach):
        found[position_hash(board)] = position
    return found


def met(book: Book, table: GameTable, last: GameTable) -> dict[tuple[chess.Move, ...], Met]:
    """How often a book's positions came up with the person on the other side, by the moves before them."""
    found = {}
    counts = [people.games_by_position(games, book.side) for games in (table, last)]
    for position, board in zip(book.positions, book.boards, strict=True):
        key = position_hash(board)
        found[position.history] = Met(*(len(count.get(key, ())) for count in counts))
    return found


def followed(book: Book, table: GameTable) -> list[int]:
    """How many moves of the book's side in a row were the book's, for each game with the person opposite."""
    moves = {
        key: {action_of(move.move) for move in position.moves} for key, position in positions_of(book).items()
    }
    rows = ~table.own & (table.white == book.side)
    lengths: dict[int, int] = {}
    left: set[int] = set()
    for key, game, action in zip(
        table.keys[rows].tolist(), table.game[rows].tolist(), table.actions[rows].tolist(), strict=True
    ):
        lengths.setdefault(game, 0)
        if game not in left and action in moves.get(key, ()):
            lengths[game] += 1
        else:
            left.add(game)
    return list(lengths.values())


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A model of a person, and what it was fitted to before the last games.

    Attributes:
        settings: of the preparation, against the model.
        model: of all games.
        engines: that are behind them; None: another policy is.
        distrust: of itself; None: it was given, or there is nothing to fit it to.
        bits: how much each of the last moves surprises the model of the earlier ones, and how many they are;
            None: there are no earlier ones.
    """

    settings: PreparationSettings
    model: GamesPolicy
    engines: EnginesFit | None
    distrust: DistrustFit | None
    bits: tuple[float, int] | None


def fitted(
    settings: PreparationSettings, found: people.Person, engines: chess_runs.Engines, first: float
) -> Fitted:
    """The model of a person, with engines behind it, and its distrust, by what is known before `first`."""
    any_before = bool((found.table.years < first).any())
    behind, like = _BEHIND.value, None
    if behind == people.FITTED:
        like = found.engines_behind(engines.opponent, first if any_before else math.inf)
        behind = like.spec
    doubt = None
    if any_before and not FLAGS["distrust"].present and is_robust(settings):
        doubt = found.distrust(settings, engines, found.spec(_PLIES.value, behind, first), first)
        settings = dataclasses.replace(settings, distrust=round(doubt.share, 2))
    settings = dataclasses.replace(settings, opponent=found.spec(_PLIES.value, behind))
    model = engines.policies(settings).sigma[1 - settings.player]
    assert isinstance(model, GamesPolicy)
    return Fitted(settings, model, like, doubt, predicted(found, model, first))


def is_robust(settings: PreparationSettings) -> bool:
    """Whether the flags ask for nothing that a robust preparation has no answer to."""
    return settings.menu <= 1 and settings.price == "infosets" and not (FLAGS.plan or FLAGS.keep)


def main(argv: Sequence[str]) -> None:
    del argv
    check_exports(FLAGS.export)
    folder = common.output_folder(FLAGS.output_dir)
    settings = dataclasses.replace(
        preparation_settings(FLAGS),
        min_probability=_MIN_PROBABILITY.value,
    )
    found = people.person(_PLIES.value)
    first, last = last_games(found)
    with chess_runs.engines() as engines:
        needed = engines.start_record()
        with engines.progress("Reading"):
            against = fitted(settings, found, engines, first)
        settings = against.settings
        FLAGS["opponent"].value = settings.opponent
        print(told_model(found, against, first), flush=True)
        with best_book_in(folder) as improved:
            made = prepared(FLAGS, settings, engines, FLAGS.budget, improved)
        rows = position_rows(made, met(made.book, found.table, last))
        more = {"model": facts(found, against), "seldom": seldom(rows)}
        extra = memory_lines(made, folder)
        write_preparation(made, folder, more)
        if rows:
            common.write_csv(folder / "positions.csv", rows)
        print_preparation(FLAGS, made, extra, needed=len(needed), searches=engines.searches)
        prepare.print_files(FLAGS, made, folder)
        lengths = followed(made.book, last)
        print(told_book(found, made, rows, lengths, first))
        if rows:
            print_met(rows, len(lengths))
        print(f"Written: {folder}/positions.csv")
        write_shown(FLAGS, folder, made)
        if FLAGS.export_store:
            engines.export(FLAGS.export_store, needed)


def facts(found: people.Person, against: Fitted) -> dict[str, Any]:
    """What the model is, for programs."""
    model, like, doubt = against.model, against.engines, against.distrust
    bits, moves = against.bits or (None, None)
    return {
        "person": found.name,
        "read": str(model.report),
        "half_life": model.weights.half_life if math.isfinite(model.weights.half_life) else None,
        "alpha": model.alpha,
        "behind": like.spec if like is not None else _BEHIND.value,
        "distrust": None if doubt is None else dataclasses.asdict(doubt),
        "bits": bits,
        "moves": moves,
    }


def told_model(found: people.Person, against: Fitted, first: float) -> str:
    """What the model is, how well it predicts the last games, and how far it distrusts itself."""
    model, bits = against.model, against.bits
    lines = [f"{found.name:<20}{model}"]
    if isinstance(model.prior, GamesPolicy):
        lines.append(f"{'Others':<20}{model.prior}")
    if against.engines is not None:
        lines.append(f"{'Engines':<20}{against.engines}")
    if bits is None:
        lines.append(
            f"{'Prediction':<20}no games before {first:.0f}, by which the last ones could be predicted"
        )
    else:
        lines.append(
            f"{'Prediction':<20}{bits[0]:.3f} bits a move from {first:.0f} on ({bits[1]} moves), which "
            "the years before are fitted to"
        )
    if against.distrust is not None:
        lines.append(f"{'Distrust':<20}{against.distrust}")
    return "\n".join(lines)


def position_rows(made: Preparation, where: dict[tuple[chess.Move, ...], Met]) -> list[dict[str, Any]]:
    """What is learnt, what it adds, and how often it came up."""
    rows = []
    book = made.book
    for position, board, gain in zip(book.positions, book.boards, made.gains, strict=True):
        line = book.start.variation_san(position.history)
        each = where[position.history]
        rows.append(
            {
                "after": line,
                "play": board.san(position.moves[0].move),
                "reach": position.reach,
                "adds": float(gain),
                "forgetting": position.worth,
                "games": each.games,
                "last_games": each.last,
            }
        )
    return rows


def seldom(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many positions came up seldom, and which share of all that the book adds is theirs."""
    rare = [row for row in rows if row["games"] < _SELDOM]
    total = math.fsum(row["adds"] for row in rows)
    adds = math.fsum(row["adds"] for row in rare)
    return {"positions": len(rare), "adds": adds, "share": adds / total if total else None}


def told_book(
    found: people.Person,
    made: Preparation,
    rows: Sequence[dict[str, Any]],
    lengths: Sequence[int],
    first: float,
) -> str:
    """What hangs on little, and where the last games meet the book."""
    rare = seldom(rows)
    share = "" if rare["share"] is None else f", {100 * rare['share']:.0f}% of what the book adds"
    lines = [
        f"Came up in fewer than {_SELDOM} of the games: {rare['positions']} of {len(rows)} positions, worth "
        f"{rare['adds']:+.4f}{share}."
    ]
    games = len(lengths)
    color = "Black" if made.book.side == chess.WHITE else "White"
    if not games:
        return "\n".join([*lines, f"From {first:.0f} on there are no games with {found.name} as {color}."])
    lines.append(
        f"In {games} games from {first:.0f} on with {found.name} as {color}, others played the book's moves"
    )
    steps = [n for n in (1, 2, 3, 4, 6, 8, 10) if any(length >= n for length in lengths)]
    lines.append(
        ", ".join(
            f"{n} or more in {100 * sum(length >= n for length in lengths) / games:.0f}%" for n in steps
        )
        + " of them."
        if steps
        else "in none of them."
    )
    return "\n".join(lines)


def print_met(rows: Sequence[dict[str, Any]], games: int, count: int = 10) -> None:
    """The positions of the book that came up most in the last games."""
    most = sorted(rows, key=lambda row: (-row["last_games"], -row["games"], -row["reach"]))[:count]
    print(
        "\nPositions of the book by how many of these games they came up in, all games, and the model's word:"
    )
    common.print_table(
        [
            (
                f"{100 * row['last_games'] / games:.0f}%" if games else "",
                row["games"],
                f"{100 * row['reach']:.1f}%",
                row["play"],
                row["after"] or "(start)",
            )
            for row in most
        ],
        ("last", "games", "model", "play", "after"),
    )


if __name__ == "__main__":
    common.run(main)
