"""A page that shows books to people: one HTML file with a board, its lines, and what they are worth.

The file needs no network and no other file. Its scripts and styles stand in it, and a content security
policy names them by their hashes, so that nothing else in the file can run or load anything. Text from
outside (names, notes) is escaped, cut to a length that a page can show, and rid of characters that control
how text is laid out.

What the page shows of a smaller budget is the best part of the book (`best_parts`), worth what its gains
add up to. A book that was made for that budget may have other moves, and may be worth more.

Where the opponent's replies come from is told in words (`ReportBook.source`) and, where they are a person's,
by games (`reply_games`); the page shows both with them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import chess
import chess.engine

from precomp_games._support.arguments import (
    FilePath,
    Ge,
    Le,
    NonNegativeFloat,
    NonNegativeInt,
    each_of,
    public,
)
from precomp_games._support.checks import (
    ArgumentError,
    check_integer,
    check_number,
    check_numbers,
    check_pair,
    shown,
)
from precomp_games._support.files import atomic_write
from precomp_games._support.messages import plain_text
from precomp_games._support.results import Shown
from precomp_games.chess.books.book import Book, Exits
from precomp_games.chess.opponents.played import Person, ReplyGames
from precomp_games.chess.play.match import MatchResult
from precomp_games.chess.preparation.preparation import Neighbor, Preparation
from precomp_games.chess.study.page import page_text
from precomp_games.chess.study.words import (
    OpponentWords,
    evaluation_words,
    limit_words,
    points,
)

_LONGEST_NAME = 80  # characters of what a score or a player is called


_Share = Annotated[float, Ge(0.0), Le(1.0)]


@public
@dataclasses.dataclass(frozen=True)
class ReportMatch:
    """How one player did in a match, in the words and numbers of the page; scores are its side's, in [0, 1].

    Attributes:
      player: its name, such as "the book".
      positions: how many it had memorized.
      games: how many it played.
      score: their mean.
      low: lower end of the 95 % interval of its expected score.
      high: upper end.
      promised: what was expected beforehand, or None.
    """

    player: str
    positions: NonNegativeInt
    games: NonNegativeInt
    score: _Share
    low: _Share
    high: _Share
    promised: _Share | None = None


@public
@dataclasses.dataclass(frozen=True)
class ReportBook(Shown):
    """A book, and what there is to say of it; utilities are its side's, in [0, 1].

    Attributes:
      book: the book.
      gains: of each of its positions, what knowing it adds to knowing those before it, in all games.
      utility: what the book promises.
      unprepared: what there is without it.
      standard_error: of `utility`, where it comes from games.
      exits: where games leave the book, as `book_exits` gives them. Replies and scores are known from these.
      score_name: what such a score is, such as "Expected score" or "Analyst's score".
      opponent: who that is, in few words.
      expect: what will probably happen, in sentences; the page begins with it.
      source: where the replies' probabilities come from, in words.
      facts: what was prepared with and against, by name.
      notes: texts at positions, by the moves up to them.
      matches: how it and others did.
      neighbors: how it did against opponents near the model.
      played: (games, mean score) of a match's games, by the moves up to where they left the book.
      games: in which the opponent's replies were played, by the moves up to the reply and with it.
      person: whose games they are; None of another opponent, of whom no reply is a guess.
      guess: what is said of a person's reply that no game has.
      evaluations: of the analyst, by the moves up to the position.
      sizes: (positions, utility) of the best book of each size, where that was asked.
      plots: SVG files that belong to the book, by what they show.
    """

    book: Book
    gains: Sequence[float]
    utility: _Share
    unprepared: _Share
    standard_error: NonNegativeFloat | None = None
    exits: Exits = ()
    score_name: str = "Expected score"
    opponent: str = ""
    expect: str = ""
    source: str = ""
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: Mapping[tuple[chess.Move, ...], str] = dataclasses.field(default_factory=dict)
    matches: Annotated[Sequence[ReportMatch], each_of(ReportMatch)] = ()
    neighbors: Annotated[Sequence[Neighbor], each_of(Neighbor)] = ()
    played: Mapping[tuple[chess.Move, ...], tuple[int, float]] = dataclasses.field(default_factory=dict)
    games: Mapping[tuple[chess.Move, ...], ReplyGames] = dataclasses.field(default_factory=dict)
    person: Person | None = None
    guess: str = "a guess: never seen"
    evaluations: Mapping[tuple[chess.Move, ...], chess.engine.PovScore] = dataclasses.field(
        default_factory=dict
    )
    sizes: Annotated[Sequence[tuple[int, float]], each_of(tuple)] = ()
    plots: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses what a page could not show."""
        gains = check_numbers(self.gains, len(self.book), "gains")
        object.__setattr__(self, "gains", tuple(gains.tolist()))
        played = {}
        for moves, found in self.played.items():
            games, score = check_pair(found, "played")
            games = check_integer(games, "played", least=1)
            played[moves] = (games, check_number(score, "played", least=0.0, most=1.0))
        object.__setattr__(self, "played", played)
        pairs = [check_pair(found, "sizes") for found in self.sizes]
        sizes = tuple(
            (check_integer(size, "sizes", least=0), check_number(value, "sizes", least=0.0, most=1.0))
            for size, value in pairs
        )
        object.__setattr__(self, "sizes", sizes)
        kinds = {"facts": str, "notes": str, "plots": str}
        for name, kind in (kinds | {"games": ReplyGames, "evaluations": chess.engine.PovScore}).items():
            given = getattr(self, name)
            if not all(isinstance(value, kind) for value in given.values()):
                raise ArgumentError(f"expected {name} to have {kind.__name__}s, got {shown(given)}")
        for text in (*self.facts, *self.plots):
            if not isinstance(text, str):
                raise ArgumentError(f"expected names of facts and plots to be texts, got {shown(text)}")


@public
def report_book(
    preparation: Preparation,
    matches: Mapping[str, MatchResult] | None = None,
    rows: Annotated[Sequence[Mapping[str, Any]], each_of(Mapping)] = (),
    notes: Mapping[tuple[chess.Move, ...], str] | None = None,
    plots: Mapping[str, str] | None = None,
    sizes: Annotated[Sequence[tuple[int, float]], each_of(tuple)] = (),
) -> ReportBook:
    """What a page and exports show of a preparation.

    Args:
      preparation: the preparation.
      matches: that were played, by the player's name; "the book" is its own.
      rows: of matches, as the result.json of `precomp-games match` has them.
      notes: texts at positions, by the moves up to them.
      plots: SVG files, by what they show.
      sizes: see `ReportBook`.

    Raises:
      ValueError, LookupError, TypeError: rows are of another kind, or what there is to show is.
    """
    settings, book = preparation.settings, preparation.book
    played: dict[tuple[chess.Move, ...], tuple[int, float]] = {}
    shown = []
    for name, match in (matches or {}).items():
        own = name == "the book"
        promised = preparation.utility if own else None
        games, (low, high) = len(match.games), match.interval
        shown.append(ReportMatch(name, len(match.book), games, match.score, low, high, promised))
        if own:
            scores = match.exit_scores(preparation.exits)
            played |= {row.exit.history: (row.games, row.score) for row in scores if row.games}
    for row in (row for row in rows if row["side"] == preparation.side):
        shown.append(ReportMatch(*(row[field.name] for field in dataclasses.fields(ReportMatch))))
        if row["player"] == "the book":
            exits = (each for each in row["exits"] if each["games"])
            played |= {
                tuple(map(chess.Move.from_uci, each["after"])): (each["games"], each["score"])
                for each in exits
            }
    analyst, opponent = preparation.engines
    words = OpponentWords(settings, opponent)
    ends = evaluation_words(settings, corrected=preparation.standard_error is not None)
    ends += ", of a run that had not finished" if preparation.search.get("unfinished") else ""
    budget, price = preparation.budget, f"{points(settings.penalty)} points in 100 games for each position"
    return ReportBook(
        book,
        gains=preparation.gains,
        utility=preparation.utility,
        unprepared=preparation.unprepared,
        standard_error=preparation.standard_error,
        exits=preparation.exits,
        score_name=preparation.score_name,
        opponent=words.title,
        source=words.replies,
        facts={
            "Opponent": words.source,
            "The book's moves": f"{analyst}, {limit_words(str(settings.analyst_limit))}",
            "Where lines end": ends,
            "What learning costs": price if budget is None else f"at most {budget} positions are learned",
        },
        notes=notes or {},
        matches=shown,
        neighbors=preparation.neighbors,
        played=played,
        games=preparation.games,
        person=preparation.person,
        guess=words.guess,
        evaluations=preparation.evaluations,
        sizes=sizes,
        plots=plots or {},
    )


ReportBooks = Annotated[Sequence[ReportBook], each_of(ReportBook)]
"""Books that a page, or files to study with, are about."""


@public
def write_report(path: FilePath, books: ReportBooks, title: str = "Opening preparation") -> None:
    """Writes a page about books, replacing `path` atomically; the same books give the same bytes.

    Args:
      path: the file.
      books: one or several, usually one a color.
      title: of the page.

    Raises:
      ValueError: no path or title, no books, or a plot that is no plain SVG file.
      OSError: as `atomic_write`.
    """
    books, title = shown_books(books, title)
    page = page_text(books, title)
    with atomic_write(path) as file:
        file.write(page)


# -- what is checked ---------------------------------------------------------------------------------------


def shown_books(books: ReportBooks, title: str) -> tuple[list[ReportBook], str]:
    """What a page, or files to study with, are about and called, with all texts as they are shown.

    Raises:
      ValueError: no title, or no books.
    """
    if not title.strip():
        raise ArgumentError(f"expected title to be a text, got {shown(title)}")
    if not books:
        raise ArgumentError("expected books to be ReportBooks, at least one, got none")
    return [_plain(each) for each in books], plain_text(title)


def _plain(each: ReportBook) -> ReportBook:
    """A book whose texts are rid of what cannot be shown; nothing else in it comes from outside as text."""
    games = {
        history: ReplyGames(
            found.count,
            tuple(
                dataclasses.replace(
                    game,
                    white=plain_text(game.white),
                    black=plain_text(game.black),
                    result=plain_text(game.result),
                )
                for game in found.games
            ),
        )
        for history, found in each.games.items()
    }
    return dataclasses.replace(
        each,
        score_name=plain_text(each.score_name, _LONGEST_NAME),
        opponent=plain_text(each.opponent, _LONGEST_NAME),
        expect=plain_text(each.expect),
        source=plain_text(each.source),
        person=None if each.person is None else _plain_person(each.person),
        guess=plain_text(each.guess, _LONGEST_NAME),
        facts={plain_text(name): plain_text(value) for name, value in each.facts.items()},
        notes={history: plain_text(note) for history, note in each.notes.items()},
        matches=[dataclasses.replace(match, player=plain_text(match.player)) for match in each.matches],
        neighbors=[dataclasses.replace(near, name=plain_text(near.name)) for near in each.neighbors],
        games=games,
        plots={plain_text(name): svg for name, svg in each.plots.items()},
    )


def _plain_person(person: Person) -> Person:
    return dataclasses.replace(person, name=plain_text(person.name, _LONGEST_NAME))
