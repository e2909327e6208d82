r"""Prepares against an engine by playing against it: prepare, play, learn from the games, prepare again.

  precomp-games spar --side=white --opponent_movetime_ms=50 --output_dir=output/sparring
  precomp-games spar --side=black --clock=1+0.01
  precomp-games spar --games=match.pgn --opponent_name="Stockfish 15.1"

The opponent is an engine as match programs play it: two processes, all moves of the game so far, a limit for
each move or a clock. What it plays is in its games, and behind them is what the engine answers to whoever
plays so far to it (--opponent_plays=game). The first games are played without a book. After each round of
--round games the book is made anew, from all games so far: they say what the opponent plays, and their scores
what it is worth to leave the book there. When --play games are played, the last book is made, and --last
fresh games, which teach nothing, say what it is worth. Where nothing is random, one game a round is played.

Games are kept as they end, so that a run that was ended goes on where it was: the folder is the state.
With --games nothing is played: the games of another match program, with the comment "book" at moves of
the book, are what is learned from.

Writes games.pgn and last.pgn, with evaluations and clocks; book.bin (Polyglot), book.pgn (variations) and
result.json, as `precomp-games prepare` does; rounds.csv and rounds.png, how the score grew.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import chess
import numpy as np
from absl import flags

from precomp_games._support import bars
from precomp_games.chess.books.book import Book
from precomp_games.chess.engines.pool import EngineError, find_engine
from precomp_games.chess.engines.searches import SearchLimit, named_options, weakened_by
from precomp_games.chess.opponents.policies import GamesPolicy
from precomp_games.chess.play.engine_games import Clock, EngineMatch, MatchEngine
from precomp_games.chess.play.match_statistics import MatchStatistics
from precomp_games.chess.preparation.engines import Engines
from precomp_games.chess.preparation.preparation import Preparation, read_preparation, write_preparation
from precomp_games.chess.preparation.prepare import with_exits
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.chess.preparation.sparring import (
    SparringGames,
    informed_policies,
    played_lines,
    prepare_from_games,
    spec_of_games,
)
from precomp_games.commands._app import run_command
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import figure, output_folder, print_table, write_csv, write_json
from precomp_games.commands._flags import Define
from precomp_games.commands._preparing import (
    define_preparation_flags,
    looking_until,
    preparation_settings,
)
from precomp_games.commands.prepare import print_files
from precomp_games.policies.playouts import mean_interval

_OWN = "precomp-games"
_BUDGET = 150  # positions
_LINES = 8  # that are printed of a round
# What an engine under a clock plays with the games before it in its hash, as a search by nodes from scratch:
# shares of what it visits in its time in the start position. See docs/chess.md.
_NODES = (0.5, 5.0)
_LIMITS = 16
_LAST = 1 << 32  # in place of a round's number, in seeds


def define(own: flags.FlagValues) -> None:
    """Defines the flags."""
    define = Define(own)
    define_preparation_flags(own)
    define.string(
        "clock",
        None,
        "Seconds and increment that each side has for a game, such as 1+0.01, in place of "
        "--opponent_nodes or --opponent_movetime_ms for each move.",
    )
    define.string(
        "own_engine", None, "UCI engine that plays for us where the book ends. Default: that of --engine."
    )
    define.multi_string("own_option", [], 'UCI option of it, "Name=value"; may be repeated.')
    define.integer("play", 200, "Games to learn from, the first ones without a book.", lower_bound=0)
    define.integer("round", 20, "Games of a round, after which the book is made anew.", lower_bound=1)
    define.integer("last", 100, "Games at the end, which say what the book is worth.", lower_bound=0)
    define.integer(
        "concurrency",
        1,
        "Games that are played side by side. More than there are cores take each other's time.",
        lower_bound=1,
        upper_bound=256,
    )
    define.string("games", None, "A PGN file to learn from; nothing is played.")
    define.string("opponent_name", None, "With --games: the opponent's name there.")
    define.string("output_dir", "output/sparring", "Where files go, and where a run goes on that was ended.")
    own.set_default("opponent_plays", "game")
    own.set_default("opponent_samples", 1)
    own.set_default("analyst_nodes", 50_000)
    own.set_default("minutes", 3.0)


@dataclasses.dataclass(frozen=True)
class _Round:
    """What is told of a round; `made` is the book that it was played with, None before there is one."""

    number: int
    made: Preparation | None
    scores: Sequence[float]

    @property
    def score(self) -> float:
        return float(np.mean(self.scores)) if self.scores else math.nan

    @property
    def error(self) -> float:
        return (
            float(np.std(self.scores, ddof=1)) / math.sqrt(len(self.scores)) if len(self.scores) > 1 else 0.0
        )


class _Sparring:
    """The work of one call."""

    def __init__(self, given: flags.FlagValues, settings: PreparationSettings, engines: Engines) -> None:
        self.given, self.settings, self.engines = given, settings, engines
        self.clock = None if given.clock is None else Clock.parse(given.clock)
        self.folder = pathlib.Path(given.output_dir)
        self.side = chess.WHITE if settings.player == 0 else chess.BLACK
        command = find_engine(given.engine)
        own, theirs = settings.own_limit or settings.opponent_limit, settings.opponent_limit
        self.name = _plain(engines.opponent.engine_id)
        self.own = MatchEngine(
            _OWN,
            find_engine(given.own_engine) if given.own_engine else command,
            self.clock or own,
            named_options(given.own_option, "own_option"),
        )
        self.opponent = MatchEngine(
            self.name,
            find_engine(given.opponent_engine) if given.opponent_engine else command,
            self.clock or theirs,
            {"Hash": "16"} | named_options(given.opponent_option, "opponent_option"),
        )
        timed = self.clock is not None or (own.movetime_ms, theirs.movetime_ms) != (None, None)
        self.random = timed or bool(weakened_by(engines.opponent.engine_id)) or bool(given.own_option)

    def conditions(self) -> dict[str, Any]:
        """What games of one folder have in common."""
        return {
            "side": chess.COLOR_NAMES[self.side],
            "opponent": self.engines.opponent.engine_id,
            "opponent_limit": str(self.opponent.limit),
            "own_limit": str(self.own.limit),
            "fen": self.settings.fen,
        }

    def read(self, name: str = "games.pgn") -> SparringGames:
        """The games that are there already."""
        return SparringGames.read(self.folder / name, self.name)

    def plan(self, games: SparringGames) -> Preparation:
        """The best book by these games."""
        with looking_until(self.given.minutes) as enough:
            budget = _BUDGET if self.given.budget is None else self.given.budget
            return prepare_from_games(
                self.settings,
                self.engines,
                games,
                budget=budget,
                max_evaluations=self.given.max_evaluations,
                enough=enough,
            )

    def play(self, match: EngineMatch, book: Book, title: str, numbers: range, number: int | None) -> None:
        """Plays games of a round, or of the last match; each is in the file when it has ended."""
        last = number is None
        name = "last" if last else str(number)
        headers = [{"Event": f"Sparring, {title.lower()}", "Round": f"{name}.{k + 1}"} for k in numbers]
        seed = (self.settings.seed, _LAST if number is None else number, numbers.start)
        path = self.folder / ("last.pgn" if last else "games.pgn")
        with (
            bars.progress(title, "games", total=len(headers)) as show,
            open(path, "a", encoding="utf-8") as out,
        ):
            for done, text in enumerate(match.games(book, headers, seed=seed), start=1):
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
                show(done)

    def rounds(self, match: EngineMatch) -> list[_Round]:
        """Plays what is left of the games to learn from, round by round."""
        size = self.given.round if self.random else 1
        told: list[_Round] = []
        made: Preparation | None = None
        before: Book | None = None
        start = self.settings.game().new_initial_state().board
        for number, first in enumerate(range(0, self.given.play, size)):
            games = self.read()
            last = min(first + size, self.given.play)
            there = len(games.records)
            if there >= last:  # played by an earlier run
                told.append(_Round(number, None, self._scores(games, first, last)))
                continue
            made = self.plan(games) if there else None
            book = made.book if made else Book(start, self.side, ())
            if there:
                self._tell_changes(games, told, book)
            if not self.random and before is not None and _same(before, book):
                print("The book is the same, and nothing is random: the game would be, too.")
                break
            self.play(match, book, f"Round {number}", range(there - first, last - first), number)
            before = book
            told.append(_Round(number, made, self._scores(self.read(), first, last)))
            self._tell(told[-1])
        return told

    def _scores(self, games: SparringGames, first: int, last: int) -> list[float]:
        names = {id(record): score for record, score in games.against(self.settings)}
        return [names[id(record)] for record in games.records[first:last] if id(record) in names]

    def _tell(self, told: _Round) -> None:
        made = told.made
        book = "no book" if made is None else f"{len(made.book)} positions, expected {made.utility:.2f}"
        print(
            f"Round {told.number:<14}scored {told.score:.2f} +- {told.error:.2f} in {len(told.scores)} games "
            f"({book})",
            flush=True,
        )

    def _tell_changes(self, games: SparringGames, told: Sequence[_Round], book: Book) -> None:
        """Prints which lines of the last round were lost, and what the book plays there now."""
        count = len(told[-1].scores) if told else len(games.records)
        played = games.against(self.settings)[-count:] if count else []
        lines = [line for line in played_lines(played, self.settings, book) if line.score < 1.0][:_LINES]
        if lines:
            print_table(
                [(line.games, f"{line.score:.2f}", line.now, _short(book, line.moves)) for line in lines],
                ("games", "score", "now", "left the book after"),
            )

    def last(self, match: EngineMatch, made: Preparation) -> list[float]:
        """Plays what is left of the games that teach nothing; their scores."""
        there = len(self.read("last.pgn").records)
        if there < self.given.last:
            self.play(match, made.book, "Last match", range(there, self.given.last), None)
        games = self.read("last.pgn")
        return self._scores(games, 0, self.given.last)


def _plain(name: str) -> str:
    """A name that PGN tags and specs take."""
    return " ".join(re.sub(r"[^A-Za-z0-9.+-]+", " ", name).split())[:60] or "Opponent"


def _same(one: Book, other: Book) -> bool:
    return [(p.history, p.moves) for p in one.positions] == [(p.history, p.moves) for p in other.positions]


def _short(book: Book, moves: Sequence[chess.Move]) -> str:
    line = book.start.variation_san(moves) or "(start)"
    return line if len(line) <= 70 else f"... {line[-66:].partition(' ')[2]}"


def run(given: flags.FlagValues) -> None:
    """Spars by the flags."""
    if (given.games is None) != (given.opponent_name is None):
        raise ValueError("--games: expected --opponent_name with it, and neither without the other")
    if given.games is not None and not os.path.isfile(given.games):
        raise ValueError(f"--games: expected a PGN file, got {given.games!r}")
    if given.clock is not None:
        Clock.parse(given.clock)  # a wrong one is an error before any work
    settings = preparation_settings(given)
    if given.clock is not None:
        limit = SearchLimit(movetime_ms=Clock.parse(given.clock).move_ms)
        settings = dataclasses.replace(settings, opponent_limit=limit, own_limit=None)
    folder = output_folder(given.output_dir)
    with open_engines(given) as engines:
        if not engines.can_search:
            raise EngineError("expected an engine to play games, got stored searches alone")
        work = _Sparring(given, _with_clock(given, settings, engines), engines)
        if given.games is not None:
            _learn(work)
            return
        _check_conditions(folder / "sparring.json", work.conditions())
        print(
            f"{given.side.capitalize()}, against {engines.opponent.engine_id} ({work.opponent.limit}), "
            f"by {given.play} games and {given.last} at the end; out of book we have {work.own.limit}.",
            flush=True,
        )
        with EngineMatch(work.own, work.opponent, concurrency=given.concurrency) as match:
            told = work.rounds(match)
            games = work.read()
            made = _last_book(work, games)
            print(
                f"\nThe last book       {len(made.book)} positions, {made.utility:.2f} expected by "
                f"{len(games.records)} games",
                flush=True,
            )
            scores = work.last(match, made)
        _tell_last(work, made, told, scores)


def _with_clock(
    given: flags.FlagValues, settings: PreparationSettings, engines: Engines
) -> PreparationSettings:
    """Settings in which an opponent under a clock is an engine that visits more nodes or fewer.

    How many it visits in its time here is asked once, in the start position.
    """
    time, plays = settings.opponent_limit.movetime_ms, given["opponent_plays"]
    if time is None or settings.opponent or plays.present:
        return settings
    epd = settings.game().new_initial_state().epd
    (result,) = engines.opponent.search([epd], settings.opponent_limit, 1)
    low, high = (max(1, round(share * result.nodes)) for share in _NODES)
    spec = f"family(nodes={low}:{high},k=1,per=move,num_limits={_LIMITS},num_temperatures=1)"
    return dataclasses.replace(settings, opponent=spec)


def _last_book(work: _Sparring, games: SparringGames) -> Preparation:
    """The book that all games make; where its match has begun, the one that it began with."""
    if work.read("last.pgn").records and (work.folder / "result.json").is_file():
        return read_preparation(work.folder)
    made = work.plan(games)
    if games.records:
        work._tell_changes(games, (), made.book)
    made = _finished(work, made, games)
    write_preparation(made, work.folder)
    return made


def _finished(work: _Sparring, made: Preparation, games: SparringGames) -> Preparation:
    """With what there is to say of a book, and settings that name the games."""
    policies, settings = informed_policies(work.settings, work.engines, games), work.settings
    if isinstance(policies.sigma[1 - settings.player], GamesPolicy):
        settings = dataclasses.replace(settings, opponent=spec_of_games(settings, games))
    return with_exits(dataclasses.replace(made, settings=settings), work.engines, policies)


def _learn(work: _Sparring) -> None:
    """The book that the games of a file make."""
    given = work.given
    games = SparringGames.read(given.games, given.opponent_name)
    print(f"Games               {games.report}", flush=True)
    work.name = games.name
    made = _finished(work, work.plan(games), games)
    write_preparation(made, work.folder)
    played = games.against(work.settings)
    if played:
        print(f"Scored              {np.mean([score for _, score in played]):.2f} in {len(played)} games")
        work._tell_changes(games, (), made.book)
    print(f"The book            {len(made.book)} positions, {made.utility:.2f} expected by these games")
    print_files(given, made, work.folder)


def _check_conditions(path: pathlib.Path, now: dict[str, Any]) -> None:
    """Refuses to go on with games that were played under other conditions."""
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        write_json(path, now)
        return
    except (ValueError, RecursionError):
        before = {}
    if before != now:
        other = next((k for k in now if not isinstance(before, dict) or before.get(k) != now[k]), "side")
        was = before.get(other) if isinstance(before, dict) else None
        raise ValueError(
            f"--output_dir: expected a new folder, or games with {other} {now[other]!r}, got {path.parent} "
            f"with {was!r}"
        )


def _tell_last(work: _Sparring, made: Preparation, told: Sequence[_Round], scores: Sequence[float]) -> None:
    """Prints and writes what the last match says, and how the score grew."""
    without = told[0] if told else None
    if scores:
        low, high = mean_interval(np.array(scores), 0.0, 1.0)
        last = _Round(len(told), made, scores)
        beside = f"; without a book {without.score:.2f} +- {without.error:.2f}" if without else ""
        print(
            f"Promise             {last.score:.3f} +- {last.error:.3f} in {len(scores)} games "
            f"(95 %: {low:.3f} to {high:.3f}){beside}"
        )
        print(f"Elo                 {MatchStatistics.of_scores(scores)}")
        search = {**made.search, "standard_error": last.error, "interval": (low, high)}
        unprepared = without.score if without and without.scores else made.unprepared
        made = dataclasses.replace(
            made, utility=last.score, unprepared=unprepared, value=last.score, search=search
        )
        write_preparation(made, work.folder)
    rows = [
        {"round": each.number, "games": len(each.scores), "score": each.score, "standard_error": each.error}
        for each in told
    ]
    if rows:
        write_csv(work.folder / "rounds.csv", rows)
        _plot(work, told, scores)
    print_files(work.given, made, work.folder)


def _plot(work: _Sparring, told: Sequence[_Round], scores: Sequence[float]) -> None:
    """The score by round, and that of the last match."""
    with figure(work.folder / "rounds.png", figsize=(7.0, 4.0)) as (drawing, axes):
        numbers = [each.number for each in told]
        axes.errorbar(
            numbers,
            [each.score for each in told],
            [each.error for each in told],
            fmt="o-",
            capsize=3,
            label="rounds, and their standard errors",
        )
        if told:
            axes.axhline(told[0].score, color="0.5", ls="--", lw=1.0, label="without a book (round 0)")
        if scores:
            last, label = _Round(len(told), None, scores), f"{len(scores)} last games"
            axes.errorbar(
                [last.number],
                [last.score],
                [last.error],
                fmt="D",
                capsize=3,
                label=label,
            )
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel("round (each with a book made from the games of those before)")
        axes.set_ylabel("score")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_title(
            f"{chess.COLOR_NAMES[work.side].capitalize()} against {work.name}, {work.opponent.limit}"
        )
        axes.legend(loc="lower right")
        drawing.tight_layout()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return run_command(__doc__, define, run, argv)
