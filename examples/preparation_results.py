"""What is printed and written of a book: its files, a page, files to study with; how its folder is read."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess
import chess.pgn
import chess_runs
from absl import flags
from preparation_books import Prepared

from precomp_games import write_together
from precomp_games.chess import (
    EXPORTS,
    MATCH_PLIES,
    Book,
    BookExit,
    ChessState,
    GamesPolicy,
    MatchResult,
    PreparationPolicies,
    PreparationSettings,
    ReportBook,
    ReportMatch,
    WrittenPreparation,
    book_exits,
    read_preparation,
    reply_games,
    write_exports,
    write_opponent_data,
    write_pgn,
    write_polyglot,
    write_report,
)

FLAGS = flags.FLAGS
_LINES = flags.DEFINE_integer("lines", 12, "How many lines of the book to print.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/chess_preparation", "Where files go.")
_REPORT = flags.DEFINE_bool("report", False, "Also write a page to look at the book with: report.html.")
_EXPORT = flags.DEFINE_list(
    "export", [], f"Also write the book for study: {', '.join(EXPORTS)}, or several of them."
)
chess_runs.define_export_store_flag()


def print_result(
    settings: PreparationSettings, found: Prepared, needed: int, searches: int, folder: pathlib.Path
) -> None:
    """Prints the result."""
    played = found.error is not None
    score, book = chess_runs.score_name(settings, played=played), found.book
    price = f"{found.to_learn} x {settings.penalty:g} for learning it"
    worth = f"Value               {found.value:.4f} = {found.utility:.4f} - {price}\n"
    size = f"{found.to_learn} positions to learn ({book.distinct_positions} distinct)"
    if found.to_learn < len(book):
        size = f"{found.to_learn} positions to learn, in a book of {book.distinct_positions}"
    bounded = FLAGS.budget is not None or FLAGS.plan
    error = "" if found.error is None else f" +- {found.error:.4f}"
    print(
        f"\n{score:<20}{found.unprepared:.4f} unprepared, {found.utility:.4f}{error} with the book\n"
        + ("" if bounded else worth)
        + f"Size                {size}, {found.told}\n"
        f"Searches            {needed} needed, {searches} of them new\n"
    )
    if len(book) > 2 * book.distinct_positions and settings.price == "infosets":
        print(
            "Many of these histories lead to the same positions, and each is priced: a position then costs "
            "several times the penalty. Fewer --max_plies may be nearer to what is meant.\n"
        )
    if book.positions:
        note = chess_runs.score_note(settings, played=played)
        if note:
            print(note)
        if _LINES.value:
            print(f"First lines of the book:\n{book.first_lines(_LINES.value)}\n")
        _print_most_valuable(book)
    plotted = "truncation_loss" in found.numbers and FLAGS.budget is not None
    extra = ", memory.csv, memory.png, memory.svg" if plotted else ""
    extra = ", plan.csv, plan.png" if FLAGS.plan else extra
    print(f"Written: {folder}/book.bin (Polyglot), book.pgn (variations), result.json{extra}")


def _print_most_valuable(book: Book, count: int = 5) -> None:
    print("Worth the most (what forgetting the position and all after it would cost):")
    rows = []
    both = zip(book.positions, book.boards, strict=True)
    for position, board in sorted(both, key=lambda pair: -pair[0].worth)[:count]:
        line = book.start.variation_san(position.history) or "(start)"
        line = line if len(line) <= 90 else f"... {line[-86:].partition(' ')[2]}"
        play = board.san(position.moves[0].move)
        rows.append((position.worth, f"{100 * position.reach:.1f}%", play, line))
    common.print_table(rows, ("value", "reach", "play", "after"))
    print()


def exits(
    book: Book,
    settings: PreparationSettings,
    policies: PreparationPolicies,
    stops: dict[tuple[str, ...], float],
) -> list[BookExit]:
    """Where games leave a book, and what its preparation counts for them; `stops` by `stop_values`."""
    value = policies.leaf_value if settings.evaluation != "rollouts" else None
    return book_exits(
        book,
        policies.sigma[1 - settings.player],
        _Taught(stops, settings.player, value) if stops else value,
        # Fitted values are those of games by the rules of chess, which no horizon ends.
        horizon=MATCH_PLIES if settings.evaluation == "calibrated" else settings.max_plies,
        min_probability=settings.min_probability,
    )


def stop_values(numbers: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """What games from where lines leave a book are expected to score, by the moves before; of `Prepared`."""
    return {tuple(stop["after"]): float(stop["value"]) for stop in numbers.get("stops", ())}


class _Taught:
    """What stopping is worth to White: as games have taught, elsewhere as the evaluation says."""

    def __init__(self, stops: dict[tuple[str, ...], float], player: int, leaf_value: Any) -> None:
        self._stops, self._player, self._leaf_value = stops, player, leaf_value

    def evaluate_batch(self, states: Sequence[ChessState]) -> list[float]:
        known = [self._stops.get(tuple(move.uci() for move in state.moves())) for state in states]
        unknown = [state for state, value in zip(states, known, strict=True) if value is None]
        others = iter(self._leaf_value.evaluate_batch(unknown))
        return [
            float(next(others)) if value is None else value if self._player == 0 else 1.0 - value
            for value in known
        ]


def write_files(
    folder: pathlib.Path,
    settings: PreparationSettings,
    engines: chess_runs.Engines,
    found: Prepared,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes book.bin, book.pgn and result.json, which belong together: all or none. Gives the last.

    Where the opponent is made of files, what they came to is written as well, to be played without them.

    Args:
      folder: where.
      settings: what the book was made by.
      engines: whose searches.
      found: the book.
      more: what result.json has besides.
    """
    book, opponent = found.book, settings.opponent or engines.opponent.engine_id
    names = ("Book", opponent) if settings.player == 0 else (opponent, "Book")
    headers = {"Event": f"Preparation against {opponent}", "White": names[0], "Black": names[1]}
    policies = engines.policies(settings)
    left = exits(book, settings, policies, stop_values(found.numbers))
    told = result_json(settings, engines, found, left) | dict(more or {})
    if found.error is None:  # what evaluations count is no expected score
        left = [dataclasses.replace(each, promised=None) for each in left]
    with write_together(folder) as drafts:
        write_opponent_data(drafts, settings, policies)
        write_polyglot(book, drafts / "book.bin")
        write_pgn(book, drafts / "book.pgn", headers, left)
        common.write_json(drafts / "result.json", told)
    return told


def result_json(
    settings: PreparationSettings, engines: chess_runs.Engines, found: Prepared, left: Sequence[BookExit]
) -> dict[str, Any]:
    """The result for programs; utilities are the preparing side's, in [0, 1].

    The opponent's replies are in what is said of the exits, `left`: how likely a reply is, is what leaves
    the book behind it by what leaves the book behind all replies.
    """
    return {
        "settings": settings.as_dict(),
        "analyst": engines.analyst.engine_id,
        "opponent": engines.opponent.engine_id,
        "value": found.value,
        "utility": found.utility,
        "unprepared": found.unprepared,
        "score": chess_runs.score_name(settings, played=found.error is not None),
        "size": len(found.book),
        "distinct_positions": found.book.distinct_positions,
        "budget": FLAGS.budget,
        **found.numbers,
        "memorized": [
            {
                "after": [move.uci() for move in position.history],
                "play": {play.move.uci(): play.probability for play in position.moves},
                "instead": {move.uci(): -loss for move, loss in position.others},
                "reach": position.reach,
                "gain": float(gain),
                "net_gain": position.worth,
                "evaluation": evaluation,
            }
            for position, gain, evaluation in zip(
                found.book.positions, found.gains, evaluations(found.book, settings, engines), strict=True
            )
        ],
        "exits": [
            {
                "after": [move.uci() for move in each.history],
                "over": each.over,
                "reach": each.reach,
                "promised": each.promised,
            }
            for each in left
        ],
        "replies": games_behind(found.book, left, engines.policies(settings).sigma[1 - settings.player]),
    }


def evaluations(
    book: Book, settings: PreparationSettings, engines: chess_runs.Engines
) -> Iterable[dict[str, int | None]]:
    """What the analyst said of each position when it chose a move there, for our side."""
    epds = [board.epd() for board in book.boards]
    for result in engines.analyst.search(epds, settings.analyst_limit, settings.multipv):
        best = result.lines[0]
        yield {"cp": best.cp} if best.mate is None else {"mate": best.mate}


def games_behind(book: Book, left: Sequence[BookExit], opponent: Any) -> list[dict[str, Any]]:
    """The games behind the replies of an opponent who is a person, as its games say."""
    if not isinstance(opponent, GamesPolicy) or opponent.read["player"] is None:
        return []
    with common.progress("Games behind replies", "bytes") as show:
        found = reply_games(book, exits=left, progress=lambda done, size: show(done), **opponent.read)
    return [
        {
            "after": [move.uci() for move in history],
            "count": behind.count,
            "games": [dataclasses.asdict(game) for game in behind.games],
        }
        for history, behind in found.items()
    ]


def read_folder(folder: str) -> WrittenPreparation:
    """What this example has written to a folder that --book_dir names."""
    with common.told_as("book_dir", "an output folder of chess_preparation.py"):
        return read_preparation(folder)


def reported(
    made: WrittenPreparation,
    matches: Sequence[tuple[str, MatchResult]] = (),
    rows: Sequence[Mapping[str, Any]] = (),
    notes: Mapping[tuple[chess.Move, ...], str] | None = None,
    plots: Mapping[str, str] | None = None,
) -> ReportBook:
    """What pages and exports have of a result.

    Args:
      made: the result.
      matches: of `play`.
      rows: of the matches in a result.json of book_match.py.
      notes: at positions, by the moves up to them.
      plots: SVG, by what they show.
    """
    settings, book, told = made.settings, made.book, made.told
    shown = [
        ReportMatch(
            name,
            len(match.book),
            len(match.games),
            match.score,
            *match.interval,
            promised=made.promised if name == "the book" else None,
        )
        for name, match in matches
    ]
    played = {
        row.exit.history: (row.games, row.score)
        for name, match in matches
        if name == "the book"
        for row in match.exit_scores(made.exits)
        if row.games
    }
    fields = ("player", "positions", "games", "score", "low", "high", "promised")
    for match_row in (row for row in rows if row["side"] == chess.COLOR_NAMES[book.side]):
        shown.append(ReportMatch(**{name: match_row[name] for name in fields}))
        if match_row["player"] == "the book":
            found = (each for each in match_row["exits"] if each["games"])
            played |= {
                tuple(map(chess.Move.from_uci, each["after"])): (each["games"], each["score"])
                for each in found
            }
    replies = _replies(settings, made.engines[1])
    learned = f"{settings.penalty:g} of a game a position"
    return ReportBook(
        book,
        gains=[float(entry["gain"]) for entry in told["memorized"]],
        utility=made.promised,
        unprepared=float(told["unprepared"]),
        standard_error=told.get("standard_error"),
        exits=made.exits,
        score_name=told.get("score", "Score"),
        source=replies,
        facts={
            "Opponent": replies,
            "The book's moves": f"{made.engines[0]}, {settings.analyst_limit}",
            "Where lines end": settings.evaluation
            + (" evaluation, corrected by games" if "games" in told else " evaluation"),
            "Memory": learned if told.get("budget") is None else f"at most {told['budget']} positions",
        },
        notes=notes or {},
        matches=shown,
        played=played,
        games=made.games,
        evaluations=made.evaluations,
        plots=plots or {},
    )


def _replies(settings: PreparationSettings, opponent: str) -> str:
    """Where the probabilities of the opponent's replies come from."""
    if settings.opponent:
        return settings.opponent
    who = f"{opponent}, {settings.opponent_limit}"
    if settings.opponent_plays == "bestmove":
        return f"{who}, as it answers"
    return f"{who}, its {settings.top_k} best moves by exp(centipawns / r), {settings.opponent_play}"


def plots_of(folder: pathlib.Path, told: Mapping[str, Any]) -> dict[str, str]:
    """The plots that a result has, as SVG."""
    memory = folder / "memory.svg"
    # One that is there may be of a result before this one.
    plotted = told.get("budget") is not None and "truncation_loss" in told and memory.is_file()
    return {"What memory is worth": memory.read_text(encoding="utf-8")} if plotted else {}


def title_of(books: Sequence[ReportBook]) -> str:
    sides = " and ".join(chess.COLOR_NAMES[each.book.side].capitalize() for each in books)
    return f"{sides}: what to prepare"


def check_exports() -> None:
    """Refuses what --export cannot be, before any work is done."""
    for name in _EXPORT.value:
        if name not in EXPORTS:
            raise ValueError(f"--export: expected some of {','.join(EXPORTS)}, got {name!r}")
    if "anki" in _EXPORT.value and importlib.util.find_spec("genanki") is None:
        raise ValueError("--export: expected genanki for anki: pip install 'precomp-games[study]'")


def export(folder: pathlib.Path, books: Sequence[ReportBook]) -> None:
    """Writes what --export says."""
    if _EXPORT.value:
        names = write_exports(folder, books, _EXPORT.value, title_of(books))
        print(f"For study: {', '.join(f'{folder}/{name}' for name in names)}")
        if "anki" in _EXPORT.value:
            print('In Anki, import cards with "Update notes: Always": so it takes over what has changed.')


def write_page(folder: pathlib.Path, books: Sequence[ReportBook]) -> None:
    """Writes report.html."""
    write_report(folder / "report.html", books, title_of(books))
    print(f"Page: {folder}/report.html (open it in a browser)")


def write_shown(
    folder: pathlib.Path, told: Mapping[str, Any], matches: Sequence[tuple[str, MatchResult]] = ()
) -> None:
    """Writes a result's page and exports, where flags ask for them."""
    if _REPORT.value or _EXPORT.value:
        shown = [reported(WrittenPreparation.of(told), matches, plots=plots_of(folder, told))]
        if _REPORT.value:
            write_page(folder, shown)
        export(folder, shown)
