"""A preparation: a book with its settings, values and search; as JSON and in a folder.

A smaller memory keeps the best part of a book, one for each number of positions. Against a fixed opponent
the gains of a book's positions are additive, and a position is of use only to those who know the ones before
it. So the best part within a budget is a knapsack on a tree: the greatest value of k positions from I on,
including I, is I's gain plus the best distribution of k - 1 over the positions that follow it (a max-plus
convolution). This chooses among a book's own positions and moves. A book that is made for a budget has more
to choose from; `precomp_games.algorithms` finds it.

A result that is read from a file is not trusted: settings, moves and numbers are checked as if they were
new, and files and engines that settings name are neither opened nor run (`PreparationSettings.trusted`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import chess
import chess.engine
import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, plain_text, public, shown
from precomp_games._support.files import atomic_write, read_json, write_together
from precomp_games._support.results import Result
from precomp_games.algorithms import MemoryFrontier
from precomp_games.chess.data.book import Book, BookExit, BookMove, BookPosition, write_pgn, write_polyglot
from precomp_games.chess.data.exits import Trap, coverage, mistakes, traps, traps_pgn
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.model.model import MODEL_FILE, ModelFiles, by_player
from precomp_games.chess.model.played import Person, PlayedGame, ReplyGames, rests_on_guesses
from precomp_games.chess.model.settings import EXPECTED_SCORE, PreparationSettings
from precomp_games.policies.specs import parsed_spec

_History = tuple[chess.Move, ...]
_LONGEST = 80  # characters of a person's name
_MOST = 1_000_000  # centipawns, or moves to mate, of an evaluation
# Errors of values of another kind than was written.
_PROBLEMS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def _counts(value: Any, name: str) -> dict[str, int]:
    counts = checks.check_instance(value, Mapping, name).items()
    return {each: checks.check_integer(count, f"{name}.{each}", least=0) for each, count in counts}


def _part(kind: Any) -> checks.Check:
    """Return a check of a field that is an instance of a class, or its JSON."""
    return checks.Check(lambda value, _: value if isinstance(value, kind) else kind(**value))


def _parts(kind: Any) -> checks.Check:
    """Return a check of a field of several instances of a class, or their JSON."""
    each = _part(kind).function
    return checks.Check(lambda value, name: tuple(each(given, name) for given in value))


PlainText = Annotated[
    str, checks.Check(lambda value, name: plain_text(checks.check_instance(value, str, name)))
]
"""A text from outside, as it can be shown."""
Share = Annotated[float, checks.Ge(0.0), checks.Le(1.0)]
_Interval = Annotated[
    tuple[float, float],
    checks.Check(lambda value, name: tuple(checks.check_numbers(value, 2, name).tolist())),
]
_Counts = Annotated[Mapping[str, int], checks.Check(_counts)]


# -- how books are found -----------------------------------------------------------------------------------


@public
@dataclasses.dataclass(frozen=True)
class PlanStep:
    """A book of a plan: its budget, its paid positions, its utility, and that of the best such book."""

    budget: checks.NonNegativeInt
    learned: checks.NonNegativeInt
    utility: float
    best: float


@public
@dataclasses.dataclass(frozen=True)
class Kept:
    """Effects of keeping a book.

    Attributes:
      given: Number of positions that are kept.
      histories: Number of histories memorized by them.
      learned: Number paid for besides.
      alone: Utility of the kept book without additions; None: unknown.
      additions: Additions to it, by the positions' numbers in the book.
      free_utility: Utility of the best book without them; None if there was no time for it.
      free_learned: Number paid for there.
    """

    given: checks.NonNegativeInt
    histories: checks.NonNegativeInt
    learned: checks.NonNegativeInt
    alone: float | None = None
    additions: Annotated[Sequence[int], checks.each_of(int)] = ()
    free_utility: float | None = None
    free_learned: checks.NonNegativeInt | None = None


@public
@dataclasses.dataclass(frozen=True)
class AtWorst:
    """Utilities of a book and of none against the worst opponent around the model."""

    utility: float
    unprepared: float


@public
@dataclasses.dataclass(frozen=True)
class LookedAt:
    """Size of a tree, and its digest."""

    expanded: checks.NonNegativeInt
    histories: checks.NonNegativeInt
    positions: checks.NonNegativeInt
    fingerprint: str


@public
@dataclasses.dataclass(frozen=True)
class Refused:
    """A book that games did not put above none: its size, and its score, with an interval of 95 %."""

    positions: checks.NonNegativeInt
    utility: float
    interval: _Interval


@public
@dataclasses.dataclass(frozen=True)
class Stop:
    """An exit of a book: moves up to it (UCI), its reach, its score in games, and their number."""

    after: Annotated[Sequence[str], checks.each_of(str)]
    reach: float
    value: float
    games: checks.NonNegativeInt


_Stops = Annotated[Sequence[Stop], _parts(Stop)]


@public
@dataclasses.dataclass(frozen=True, kw_only=True)
class WholeTree:
    """Search over a whole tree.

    Attributes:
      plan: Growing books, if they were asked for.
      kept: Effects of keeping a book, if one was kept.
      learned: Number of positions, or histories, paid for.
      truncation_loss: Bound on the value that the penalty pruned.
      components: The utility against each of several opponents.
      robust: Utilities at worst, if the model is distrusted.
      tree: The tree.
      unfinished: Whether the run goes on.
    """

    plan: Annotated[Sequence[PlanStep], _parts(PlanStep)] = ()
    kept: Annotated[Kept, _part(Kept)] | None = None
    learned: checks.NonNegativeInt
    truncation_loss: float | None = None
    components: Annotated[Sequence[float], checks.each_of(float)] = ()
    robust: Annotated[AtWorst, _part(AtWorst)] | None = None
    tree: Annotated[LookedAt, _part(LookedAt)]
    unfinished: bool = False


@public
@dataclasses.dataclass(frozen=True, kw_only=True)
class BestFirst:
    """Best-first search over lines.

    Attributes:
      upper: Upper bound on the value of such a book.
      learned: Number of positions, or histories, paid for; None: all of the book.
      order: One of `ORDERS`.
      work: Counts of work, such as "evaluations".
      stops: Exits of a book that was searched again, with the results of that.
      unfinished: Whether the run goes on; games may then still determine the book's value.
    """

    upper: float | None = None
    learned: checks.NonNegativeInt | None = None
    order: str | None = None
    work: _Counts = dataclasses.field(default_factory=dict)
    stops: _Stops = ()
    unfinished: bool = False


@public
@dataclasses.dataclass(frozen=True, kw_only=True)
class ByGames:
    """Search validated by games between both sides' play; intervals are of 95 %.

    Attributes:
      standard_error: Of the book's utility.
      interval: Of the book's utility.
      unprepared_interval: Of the utility without it.
      games: Numbers of games that "taught" values of positions, made the "promise", and were played
        "unprepared".
      work: Other counts of work.
      rounds: As of `ConfirmedPrecomputation`.
      stops: Exits of the book.
      refused: The book, if games put it no higher than none; then there is no book.
    """

    standard_error: checks.NonNegativeFloat
    interval: _Interval
    unprepared_interval: _Interval
    games: _Counts
    work: _Counts
    rounds: Annotated[Sequence[Mapping[str, Any]], checks.each_of(Mapping)]
    stops: _Stops
    refused: Annotated[Refused, _part(Refused)] | None = None


@public
@dataclasses.dataclass(frozen=True, kw_only=True)
class BySparring:
    """Search by games that an opponent played.

    Attributes:
      games: Number of games "played".
      work: Counts of work.
      stops: Exits of the book.
      interval: Of 95 %, of the utility, if a match has determined it.
      standard_error: Of the utility, by that match.
    """

    games: _Counts
    work: _Counts
    stops: _Stops
    interval: _Interval | None = None
    standard_error: checks.NonNegativeFloat | None = None


Search = WholeTree | BestFirst | ByGames | BySparring


def _search(data: Mapping[str, Any]) -> Search:
    """Return the search in a result's JSON; other keys are for other programs."""
    kind: Any = WholeTree if "tree" in data else BestFirst
    if "games" in data:
        kind = BySparring if "played" in data["games"] else ByGames
    found: Search = kind(
        **{field.name: data[field.name] for field in dataclasses.fields(kind) if field.name in data}
    )
    return found


def _search_json(search: Search) -> dict[str, Any]:
    """Return a search for JSON, without fields that have their default."""
    values = dataclasses.asdict(search)
    defaults = {each.name: each.default for each in dataclasses.fields(search)}
    return {name: value for name, value in values.items() if value != defaults[name]}


# -- a preparation -----------------------------------------------------------------------------------------


@public
@dataclasses.dataclass(frozen=True)
class Neighbor:
    """An opponent, with the scores of the book and of no book against it, in [0, 1].

    Attributes:
      name: Its difference from the model, in words; "the model" itself.
      games: Number of games with the book, and as many without it.
      score: With the book.
      unprepared: Without it.
      standard_error: Of their difference, by these games.
    """

    name: PlainText
    games: checks.PositiveInt
    score: Share
    unprepared: Share
    standard_error: checks.NonNegativeFloat

    @property
    def gain(self) -> float:
        """Value of the book."""
        return self.score - self.unprepared


@dataclasses.dataclass(frozen=True)
class Preparation(Result):
    """A book with its settings, values and search; utilities are the preparing side's, in [0, 1].

    Attributes:
      settings: Of the preparation.
      book: The memorized positions.
      engines: The analyst's and the opponent's identity, as in `StoredEngine`.
      utility: Value of the book: its expected score, or its score by the evaluation (`score_name`).
      unprepared: The same without the book.
      value: `utility` less the penalties, which a budget or a plan without games replaces.
      gains: For each of the book's positions, the gain over all games of knowing it beside those before it.
      budget: Largest number of positions to learn; None: as many as are worth it.
      exits: Exits of the book, with expected scores.
      evaluations: The analyst's when it chose the book's moves, by the moves up to the position.
      games: Games in which the opponent's replies were played, by the moves up to the reply and with it.
      person: The player of these games; None for another opponent.
      clock: Gain from the time that known moves save, beside `utility`, which is by the position alone; None:
        unknown.
      search: The kind of search, with its results.
      neighbors: Scores against opponents near the model, if they were played (`play_neighbors`).
      files: Data of the files that the settings name; they are written beside the result.
      frontier: Value of each size of memory, if the whole tree was searched; not in JSON.
    """

    _made_by: ClassVar[str] = "prepare() or Preparation.read()"

    settings: PreparationSettings
    book: Book
    engines: tuple[str, str]
    utility: float
    unprepared: float
    value: float
    gains: Sequence[float]
    budget: int | None = None
    exits: Sequence[BookExit] = ()
    evaluations: Mapping[_History, chess.engine.PovScore] = dataclasses.field(default_factory=dict)
    games: Mapping[_History, ReplyGames] = dataclasses.field(default_factory=dict)
    person: Person | None = None
    clock: float | None = None
    search: Search = BestFirst()
    neighbors: Sequence[Neighbor] = ()
    files: ModelFiles | None = dataclasses.field(default=None, repr=False)
    frontier: MemoryFrontier | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the numbers, which may come from a file."""
        for name in ("utility", "unprepared"):
            share = checks.check_number(getattr(self, name), name, least=0.0, most=1.0)
            object.__setattr__(self, name, share)
        object.__setattr__(self, "value", checks.check_number(self.value, "value"))
        if self.clock is not None:
            object.__setattr__(self, "clock", checks.check_number(self.clock, "clock", least=-1.0, most=1.0))
        gains = checks.check_numbers(self.gains, len(self.book), "gains")
        object.__setattr__(self, "gains", tuple(gains.tolist()))

    @property
    def player(self) -> int:
        """Player of the book, 0 White, 1 Black."""
        return self.settings.player

    @property
    def side(self) -> str:
        """The book's side, "white" or "black"."""
        return chess.COLOR_NAMES[self.book.side]

    @property
    def standard_error(self) -> float | None:
        """Standard error of `utility`, if it comes from games."""
        return self.search.standard_error if isinstance(self.search, ByGames | BySparring) else None

    @property
    def score_name(self) -> str:
        """Name of `utility`: expected if games determine it, and otherwise an opinion, with its owner."""
        return self.settings.kind.score_name if self.standard_error is None else EXPECTED_SCORE

    @property
    def score_note(self) -> str:
        """A line on what such a score is not; "" for an expected score."""
        return self.settings.kind.note() if self.standard_error is None else ""

    @property
    def learned(self) -> int:
        """Number of positions, or histories, paid for."""
        search = self.search
        learned = search.learned if isinstance(search, WholeTree | BestFirst) else None
        return len(self.book) if learned is None else learned

    @property
    def unfinished(self) -> bool:
        """Return whether its run had not ended."""
        return isinstance(self.search, WholeTree | BestFirst) and self.search.unfinished

    @property
    def seen(self) -> dict[_History, int] | None:
        """Number of a person's games in which each reply was played; others never were. None: no person."""
        return {history: found.count for history, found in self.games.items()} or None

    @property
    def listed_games(self) -> dict[PlayedGame, int]:
        """The games behind replies, by number: a game that is behind several is listed once."""
        games = dict.fromkeys(game for behind in self.games.values() for game in behind.games)
        return {game: number for number, game in enumerate(games)}

    @property
    def places(self) -> Sequence[Hashable]:
        """For each of the book's positions, the unit that is learned once: the position, or its history."""
        by_position = self.settings.price == "positions"
        return [board.epd() for board in self.book.boards] if by_position else range(len(self.book))

    @property
    def guessed(self) -> tuple[int, float]:
        """Number of `places` after guesses, replies that no game has, and their total gain."""
        guessed = rests_on_guesses(self.book, self.games)
        added = (gain for gain, is_guess in zip(self.gains, guessed, strict=True) if is_guess)
        known = {place for place, is_guess in zip(self.places, guessed, strict=True) if not is_guess}
        return len(set(self.places) - known), math.fsum(added)

    @property
    def coverage(self) -> dict[int, float]:
        """Share of games in which each of our moves, by its number, is still the book's."""
        return coverage(self.book, self.exits)

    @property
    def traps(self) -> list[Trap]:
        """Likely replies that cost their player, most valuable first; [] if the opponent is an engine."""
        return traps(self.book, self.exits, self.evaluations) if self.of_people else []

    @property
    def mistakes(self) -> list[Trap]:
        """The traps after each history that leads to them, in the order of the tree."""
        return mistakes(self.book, self.exits, self.evaluations) if self.of_people else []

    @property
    def of_people(self) -> bool:
        """Return whether the opponent is people of a rating, or a person."""
        return self.settings.of_people or self.person is not None

    @property
    def stops(self) -> dict[tuple[str, ...], float]:
        """Values of exits from games or later searches, by moves in UCI notation."""
        stops = () if isinstance(self.search, WholeTree) else self.search.stops
        return {tuple(stop.after): stop.value for stop in stops}

    def columns(self) -> dict[str, Any]:
        """Return a row for each of the book's positions: those of `Book.columns`, and the gain."""
        return self.book.columns() | {"gain": self.gains}

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.book._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Return the preparation for programs, as `from_json` takes it, without the data of named files."""
        positions = zip(self.book.positions, self.gains, strict=True)
        listed = self.listed_games
        return {
            "settings": self.settings.as_dict(),
            "analyst": self.engines[0],
            "opponent": self.engines[1],
            "value": self.value,
            "utility": self.utility,
            "unprepared": self.unprepared,
            **({} if self.clock is None else {"clock": self.clock}),
            "score": self.score_name,
            "size": len(self.book),
            "distinct_positions": self.book.distinct_positions,
            "budget": self.budget,
            **_search_json(self.search),
            "memorized": [self._position_json(position, gain) for position, gain in positions],
            "exits": [
                {"after": _uci(e.history), "over": e.over, "reach": e.reach, "promised": e.promised}
                for e in self.exits
            ],
            "replies": [
                {"after": _uci(moves), "count": each.count, "games": [listed[game] for game in each.games]}
                for moves, each in self.games.items()
            ],
            "played_games": [
                dataclasses.asdict(game) | {"moves": " ".join(_uci(game.moves))} for game in listed
            ],
            "person": None if self.person is None else dataclasses.asdict(self.person),
            "neighbors": [dataclasses.asdict(each) for each in self.neighbors],
        }

    @public
    def write(self, folder: checks.FilePath, more: Mapping[str, Any] | None = None) -> None:
        """Write book.bin (Polyglot), book.pgn (variations) and result.json, all or none of them.

        If the opponent is people or a person, traps.pgn has a game for each of `traps`.

        If the settings name files, their data are written as well, as opponent.npz: counts of moves as
        fitted, and a calibration, to be used without the files. It contains no games.

        Args:
          folder: an existing folder.
          more: further content of result.json.

        Raises:
          OSError: a file cannot be written.
        """
        spec, exits = self.settings.opponent, self.exits
        person = parsed_spec(spec) if spec else {}
        if person.get("name") == "games":
            spec = str(person.get("player") or spec)
        opponent = plain_text(spec) or self.engines[1]
        names = by_player(self.player, "Book", opponent)
        headers = {"Event": f"Preparation against {opponent}", "White": names[0], "Black": names[1]}
        if self.standard_error is None:  # an evaluation gives no expected score
            exits = [dataclasses.replace(each, promised=None) for each in exits]
        with write_together(folder) as drafts:
            if self.files is not None:
                self.files.save(drafts / MODEL_FILE)
            write_polyglot(self.book, drafts / "book.bin")
            write_pgn(self.book, drafts / "book.pgn", headers, exits, self.seen)
            if self.of_people:
                text = traps_pgn(self.book, self.traps, headers)
                (drafts / "traps.pgn").write_text(text, encoding="utf-8")
            with atomic_write(drafts / "result.json") as file:
                json.dump(self.to_json() | dict(more or {}), file, indent=1)
                file.write("\n")

    def _position_json(self, position: BookPosition, gain: float) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "after": _uci(position.history),
            "play": {play.move.uci(): play.probability for play in position.moves},
            "instead": {move.uci(): -loss for move, loss in position.others},
            "reach": position.reach,
            "gain": gain,
            "net_gain": position.worth,
        }
        if (score := self.evaluations.get(position.history)) is not None:
            own = score.pov(self.book.side)
            entry["evaluation"] = {"mate": own.mate()} if own.is_mate() else {"cp": own.score()}
        return entry

    @classmethod
    @public
    def read(cls, folder: checks.FilePath) -> Preparation:
        """Read `result.json` in a folder, and its opponent's data, if `opponent.npz` is there.

        Raises:
          ValueError: the folder has no such file, or the file is no result of a preparation.
        """
        path = pathlib.Path(folder) / "result.json"
        model = path.with_name(MODEL_FILE)
        expected = f"expected a result.json of precomp-games prepare, got {str(path)!r}"
        try:
            data = read_json(path)
            files = ModelFiles.load(model) if model.is_file() else None
        except OSError as error:
            raise ArgumentError(
                f"expected an output folder of precomp-games prepare, got {str(folder)!r} "
                f"({error.strerror}: {path})"
            ) from None
        except ArgumentError:  # of the model's file
            raise
        except ValueError as error:
            raise ArgumentError(f"{expected} ({error})") from None
        try:
            return cls._parsed(data, files)
        except _PROBLEMS as error:
            raise ArgumentError(f"{expected} ({one_line(repr(error))})") from None

    @classmethod
    def _parsed(cls, data: Mapping[str, Any], files: ModelFiles | None) -> Preparation:
        given = dict(data["settings"])
        for name in ("analyst_limit", "opponent_limit", "own_limit", "check_limit"):
            if given.get(name) is not None:
                given[name] = SearchLimit.parse(given[name])
        settings = PreparationSettings(**given, trusted=False, files=files)  # whatever the file claims
        engines = (plain_text(str(data["analyst"])), plain_text(str(data["opponent"])))
        for text in (*engines, settings.opponent, settings.calibration):  # shown in terminals
            if not text.isprintable():
                raise ValueError(f"a name that cannot be printed, {shown(text)}")
        side = settings.side
        entries = data["memorized"]
        listed = [_game(each) for each in data.get("played_games", ())]
        positions = list(map(_position, entries))
        person = data.get("person")
        years = [] if person is None else [person[name] for name in ("games", "first", "last")]
        return cls(
            settings,
            Book(settings.game().start_board, side, positions),
            engines,
            data["utility"],
            data["unprepared"],
            data["value"],
            [entry["gain"] for entry in entries],
            None if data.get("budget") is None else checks.check_integer(data["budget"], "budget", least=0),
            tuple(
                BookExit(_moves(each["after"]), each["over"], each["reach"], each["promised"])
                for each in data.get("exits", ())
            ),
            {
                position.history: _score(entry["evaluation"], side)
                for position, entry in zip(positions, entries, strict=True)
                if "evaluation" in entry
            },
            {_moves(each["after"]): _games(each, listed) for each in data.get("replies", ())},
            None if person is None else Person(plain_text(str(person["name"]), _LONGEST), *years),
            data.get("clock"),
            _search(data),
            tuple(Neighbor(**each) for each in data.get("neighbors", ())),
            files,
        )


def _uci(moves: Sequence[chess.Move]) -> list[str]:
    return [move.uci() for move in moves]


def _moves(texts: Sequence[str]) -> _History:
    """Return moves from UCI notation."""
    return tuple(map(chess.Move.from_uci, texts))


def _position(entry: Mapping[str, Any]) -> BookPosition:
    return BookPosition(
        _moves(entry["after"]),
        tuple(BookMove(chess.Move.from_uci(move), p) for move, p in entry["play"].items()),
        entry["reach"],
        entry["net_gain"],
        tuple((chess.Move.from_uci(move), -change) for move, change in entry.get("instead", {}).items()),
    )


def _score(given: Mapping[str, Any], side: chess.Color) -> chess.engine.PovScore:
    """Return an evaluation, in centipawns or moves to mate, of the book's side."""
    ((unit, value),) = given.items()
    amount = checks.check_integer(value, unit, least=-_MOST, most=_MOST)
    return chess.engine.PovScore({"cp": chess.engine.Cp, "mate": chess.engine.Mate}[unit](amount), side)


def _game(given: Mapping[str, Any]) -> PlayedGame:
    """Return a game of a person."""
    moves = _moves(str(given.get("moves", "")).split())
    return PlayedGame(given["white"], given["black"], given["year"], given["result"], moves)


def _games(given: Mapping[str, Any], listed: Sequence[PlayedGame]) -> ReplyGames:
    """Return the games of a reply, by their numbers; older results contain the games themselves."""
    games = [
        _game(each) if isinstance(each, Mapping) else listed[checks.check_integer(each, "games", least=0)]
        for each in given["games"]
    ]
    return ReplyGames(given["count"], tuple(games))


# -- a part ------------------------------------------------------------------------------------------------

_Joined = list[list[tuple[int, npt.NDArray[np.int64]]]]


@public
def best_parts(book: Book, gains: Sequence[float]) -> npt.NDArray[np.bool_]:
    """Return the best part of a book within each budget, in O(n^2) time and bytes for n positions.

    Args:
      book: the book.
      gains: for each position, the gain over all games of knowing it beside those before it.

    Returns:
      bool[n + 1, n]: row k marks the positions of the best part of at most k; of equally good ones it has the
      fewest. The last row is the whole book, whatever its gains.

    Raises:
      ValueError: not a finite gain for each of its positions.
    """
    gain = checks.check_numbers(gains, len(book), "gains").tolist()
    n = len(book)
    before = predecessors(book)
    # For each position, or (n) for the start: the greatest value of each number of positions of the joined
    # subtrees, and the subtrees, with the number of positions of each that is best at each size.
    worth = [np.zeros(1) for _ in range(n + 1)]
    joined: _Joined = [[] for _ in range(n + 1)]
    for k in sorted(range(n), key=lambda k: -len(book.positions[k].history)):
        # With k itself, or nothing.
        own = np.concatenate([[0.0], gain[k] + worth[k]])
        worth[before[k]], taken = _join(worth[before[k]], own)
        worth[k] = np.zeros(0)
        joined[before[k]].append((k, taken))
    best = worth[n]
    parts = np.zeros((n + 1, n), np.bool_)
    size = 0
    for budget in range(n):
        if best[budget] > best[size]:
            size = budget
        _take(parts[budget], joined, size)
    parts[n] = True
    return parts


def _join(
    one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return (greatest value of each number of positions of both, the other's number of these)."""
    few, many = (other, one) if len(other) <= len(one) else (one, other)
    most = np.full(len(one) + len(other) - 1, -np.inf)
    of_few = np.zeros(len(most), np.int64)
    for count, value in enumerate(few.tolist()):
        here = slice(count, count + len(many))
        better = value + many > most[here]
        most[here] = np.where(better, value + many, most[here])
        of_few[here][better] = count
    return most, of_few if few is other else np.arange(len(most)) - of_few


def _take(part: npt.NDArray[np.bool_], joined: _Joined, size: int) -> None:
    """Mark the positions of the best part with `size` of them."""
    stack = [(len(part), size)]
    while stack:
        k, left = stack.pop()
        for child, taken in reversed(joined[k]):
            count = int(taken[left])
            left -= count
            if count:
                part[child] = True
                stack.append((child, count - 1))


def predecessors(book: Book) -> list[int]:
    """Return the last memorized position before each; if there is none, the number of positions."""
    known: dict[tuple[chess.Move, ...], int] = {each.history: k for k, each in enumerate(book.positions)}
    found = []
    for each in book.positions:
        prefixes = (each.history[:ply] for ply in range(len(each.history) - 1, -1, -1))
        found.append(next((known[prefix] for prefix in prefixes if prefix in known), len(book)))
    return found
