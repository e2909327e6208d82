r"""Prepares against an engine by playing against it: prepare, play, learn from the games, prepare again.

  precomp-games spar --side=white --opponent_movetime_ms=50 --output_dir=output/sparring
  precomp-games spar --side=black --clock=1+0.01
  precomp-games spar --games=match.pgn --opponent_name="Stockfish 15.1"

The opponent is an engine as match programs play it: two processes, all moves of the game so far, a limit for
each move or a clock. The model expects its moves in the games so far. The prior behind them is, under a time
limit, a search from scratch with one to ten times the nodes of that time, of which it plays any move that is
about as good as the best one, and otherwise the engine's own answers in such a game (--opponent_plays=game).
The first games are played without a book. After each round of --round games the book is made anew from all
games so far, which give the opponent's moves and, by their scores, the value of leaving the book there. If
games are random, such a book also tries lines with few games, to learn what they are worth. After --play
games the last book is made, which keeps to lines that have scored, and --last fresh games, which teach
nothing, measure it, beside as many without a book. If nothing is random, a round is one game, and so is the
last match, and the first round is the score without a book. Before any game, a time limit also sets the
evaluation of play after the book: --calibration=engines, unless another one is named.

Games are kept as they end, so that a run that was ended goes on from its folder, also with a larger --play;
the earlier last match is then put aside. With --games nothing is played: the book is learned from the games
of another match program, with the comment "book" at moves of the book.

Writes games.pgn, last.pgn and without.pgn, with evaluations and clocks; book.bin (Polyglot), book.pgn
(variations) and result.json, as `precomp-games prepare` does; rounds.csv and rounds.png, the scores by round.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, TextIO

import chess
import numpy as np
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted, shown
from precomp_games._support.config import bar
from precomp_games._support.deadlines import limited, part, seconds_left, time_is_up
from precomp_games._support.files import read_json
from precomp_games.chess.data.book import Book, points
from precomp_games.chess.engines.pool import Demand, engine_troubles, find_engine
from precomp_games.chess.engines.searches import SearchLimit, named_options, weakened_by
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.opponents import GamesPolicy
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan import sparring
from precomp_games.chess.plan.preparation import BySparring, Preparation
from precomp_games.chess.plan.prepare import with_exits
from precomp_games.chess.plan.sparring import SparringGames
from precomp_games.chess.play.engine_games import Clock, MatchEngine, cut_to_whole_games, play_engine_games
from precomp_games.chess.play.match_statistics import MatchStatistics
from precomp_games.chess.study.words import range_words, signed_points
from precomp_games.commands import _app, _chess, _files, _flags, prepare
from precomp_games.policies.playouts import mean_interval

_LINES = 8  # that are printed of a round
# Standard deviations of estimates: taken off what few games have seen, of the last book, and added for books
# of rounds, which are there to learn, where games are random. They are those of wins and losses; where half
# of the games are drawn, true ones are 0.6 times as large.
_DOUBT, _HOPE = 0.6, 1.0
_OPTIMISM = 0.03  # where games are random, and no move wins by itself: see docs/sparring.md
_LAST = {"last": 1 << 32, "without": (1 << 32) + 1}  # matches at the end, and their numbers in seeds
_ROUNDS = 0.6  # of --minutes; half of the others are for the last book, and the rest for its match
_MINUTES = 3.0  # that are looked for a book, and less where there are --minutes:
_LOOKING = 0.25  # of the time that is left for rounds
_TURN = 10  # games of the last match before as many without a book
_CALIBRATION = "engines"  # under a clock
# What an engine under a clock plays with the games before it in its hash, as searches by nodes from scratch:
# so many times its nodes in its time in the start position. It plays any of its best moves that are about
# as good, by a temperature in centipawns. See docs/sparring.md.
_TIMES = {"a": 1.0, "b": 2.2, "c": 4.6, "d": 10.0}
_REPLIES, _REPLIES_R = 4, 5.0
_LEAST = 1e-3  # less likely replies are not searched: a temperature gives all moves some probability


@dataclasses.dataclass
class Flags:
    """Flags of the players and of the number of games.

    Attributes:
      side: The side that prepares.
      clock: Seconds and increment of each side's clock, such as 1+0.01, in place of a limit for each move.
      own_engine: UCI engine that plays for us after the book. Default: that of --engine.
      own_option: UCI option of it, "Name=value"; may be repeated.
      play: Number of games to learn from, the first ones without a book.
      round: Number of games in a round, after which the book is made anew.
      last: Number of games at the end, which measure the book; if games are random, as many without a book
        are played in turns with them.
      concurrency: Number of games at a time. More games than cores take each other's time.
      budget: Find the best book of at most so many positions.
      max_evaluations: Stop the search after so many evaluations.
      games: A PGN file to learn from; nothing is played.
      opponent_name: With --games: the opponent's name there.
      output_dir: Where files go; a run that was ended goes on there.
    """

    side: Literal["white", "black"] = "white"
    clock: str | None = None
    own_engine: str | None = None
    own_option: _flags.Repeated = ()
    play: checks.NonNegativeInt = 200
    round: checks.PositiveInt = 20
    last: checks.NonNegativeInt = 100
    concurrency: Annotated[int, checks.Ge(1), checks.Le(256)] = 1
    budget: checks.NonNegativeInt = 400
    max_evaluations: checks.PositiveInt = 20_000
    games: str | None = None
    opponent_name: str | None = None
    output_dir: str = "output/sparring"


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_flags(own, Flags, _flags.MinutesFlags)
    without = ("opponent_temperature_cp", "opponent_weights", "distrust", "price")
    plays = {"opponent_plays": "game", "opponent_samples": 1, "evaluation": "calibrated"}
    _flags.define_chess_flags(own, without, analyst_nodes=50_000, penalty=3e-5, menu=4, **plays)


def run(given: flags.FlagValues) -> None:
    """Spar by the flags."""
    settings = _settings(given)
    folder = _app.output_folder(given.output_dir)
    with _chess.open_engines(given, settings, plays=True) as engines:
        work = Sparring(given, _with_clock(given, settings, engines), engines)
        if given.games is not None:
            work.learn()
            return
        _check_conditions(folder / "sparring.json", work.conditions())
        work.cut_back()
        print(
            f"{given.side.capitalize()}, against {engines.opponent.engine_id} ({work.opponent.limit}), "
            f"by {given.play} games and {given.last} at the end; out of book we have {work.own.limit}."
        )
        with part(_ROUNDS):
            rounds = work.rounds()
        with part(0.5):
            made = work.last_book()
        work.tell(made, rounds, *work.last(made))


def _settings(given: flags.FlagValues) -> PreparationSettings:
    """Return the settings of the flags; a wrong one is an error before any work."""
    if (given.games is None) != (given.opponent_name is None):
        raise ValueError("--games: expected --opponent_name with it, and neither without the other")
    if given.games is not None and not os.path.isfile(given.games):
        raise ValueError(f"--games: expected a PGN file, got {given.games!r}")
    if given.evaluation != "calibrated" or given.menu < 1:
        expected = f"calibrated, and a --menu of 1 or more, got {given.evaluation} and {given.menu}"
        raise ValueError(f"--evaluation: expected {expected}")
    settings = _flags.settings_of(given, 0 if given.side == "white" else 1)
    if settings.game().new_initial_state().is_terminal():
        raise ValueError(f"--fen: expected a position in which the game goes on, got {given.fen!r}")
    if given.clock is None:
        return settings
    limit = SearchLimit(movetime_ms=Clock.parse(given.clock).move_ms)
    for each in ("own_nodes", "opponent_nodes", "opponent_movetime_ms"):
        if given[each].present:
            raise ValueError(f"--{each}: expected none beside --clock, got {given[each].value}")
    return dataclasses.replace(settings, opponent_limit=limit, own_limit=None)


def _with_clock(
    given: flags.FlagValues, settings: PreparationSettings, engines: Engines
) -> PreparationSettings:
    """Return settings in which an opponent under a clock is an engine that visits more nodes or fewer.

    Its nodes in its time are measured once, in the start position. An engine that plays other moves than it
    finds is asked in games. Play after the book has the value that it had in games of engines under a clock.
    """
    if settings.opponent_limit.movetime_ms is None or weakened_by(engines.opponent.engine_id):
        return settings
    if not given["calibration"].present:
        settings = dataclasses.replace(settings, calibration=_CALIBRATION)
    if settings.opponent or given["opponent_plays"].present:
        return settings
    epd = settings.game().new_initial_state().epd
    with limited(None):
        (result,) = engines.opponent.search([epd], settings.opponent_limit, 1, 1)  # its answer does
    demand = Demand(SearchLimit(nodes=max(1, result.nodes)), _REPLIES, "", "")
    named = find_engine(given.opponent_engine or given.engine)
    if not result.nodes or engine_troubles(named, {}, "opponent_option", [demand]):
        name = engines.opponent.engine_id
        print(f"{name} keeps no limit of nodes: behind its games is what it answers in games by time.")
        return settings
    nodes = {name: max(1, round(share * result.nodes)) for name, share in _TIMES.items()}
    plays = ",".join(f"{k}=uci(nodes={n},r={_REPLIES_R:g},top_k={_REPLIES})" for k, n in nodes.items())
    return dataclasses.replace(settings, opponent=f"mixture({plays},per=move)", min_probability=_LEAST)


def _check_conditions(path: pathlib.Path, now: dict[str, Any]) -> None:
    """Refuse to go on with games that were played under other conditions."""
    try:
        before = read_json(path)
    except FileNotFoundError:
        _files.write_json(path, now)
        return
    except ValueError as error:
        expected = f"a new folder, or one of this command, got {str(path)!r} ({error})"
        raise ValueError(f"--output_dir: expected {expected}") from None
    for name, value in now.items():
        if type(before.get(name)) is not type(value) or before[name] != value:
            expected = f"games with {name} {value!r}, got {path.parent} with {shown(before.get(name))}"
            raise ValueError(f"--output_dir: expected a new folder, or {expected}")


class _Round(NamedTuple):
    """The scores of a round's games, or of a match."""

    number: int
    scores: Sequence[float]

    @property
    def score(self) -> float:
        return float(np.mean(self.scores)) if self.scores else math.nan

    @property
    def error(self) -> float:
        count = len(self.scores)
        return float(np.std(self.scores, ddof=1)) / math.sqrt(count) if count > 1 else math.nan

    def __str__(self) -> str:
        error = "" if math.isnan(self.error) else f" +- {points(self.error)}"
        return f"{points(self.score)}{error} in {counted(len(self.scores), 'game')}"


class Sparring:
    """The work of one call, in the folder that has its games."""

    def __init__(self, given: flags.FlagValues, settings: PreparationSettings, engines: Engines) -> None:
        self.given, self.settings, self.engines = given, settings, engines
        self.folder = pathlib.Path(given.output_dir)
        self.side = settings.side
        self.no_book = Book(settings.game().new_initial_state().board, self.side, ())
        self.clock = clock = None if given.clock is None else Clock.parse(given.clock)
        own, theirs = settings.own_limit or settings.opponent_limit, settings.opponent_limit
        names = ("engine_option", "own_option", "opponent_option")
        options = {name: named_options(given[name].value, name) for name in names}
        mine = {} if given.own_engine else options["engine_option"]
        same = not (given.opponent_engine or given.opponent_option)
        command = find_engine(given.own_engine or given.engine)
        self.own = MatchEngine("precomp-games", command, clock or own, mine | options["own_option"])
        # A name that PGN tags and specs take.
        name = " ".join(re.sub(r"[^A-Za-z0-9.+-]+", " ", engines.opponent.engine_id).split())[:60]
        command = find_engine(given.opponent_engine or given.engine)
        played = options["engine_option" if same else "opponent_option"]
        self.opponent = MatchEngine(name or "Opponent", command, clock or theirs, played)
        timed = clock is not None or (own.movetime_ms, theirs.movetime_ms) != (None, None)
        self.random = timed or any(map(_draws, (self.own, self.opponent)))

    def conditions(self) -> dict[str, Any]:
        """Return the conditions that all games of a folder share."""
        played = (("own", self.own), ("opponent", self.opponent))
        return {
            **{"side": chess.COLOR_NAMES[self.side], "fen": self.settings.fen, "round": self.given.round},
            **{name: each.name for name, each in played},
            **{f"{name}_limit": str(each.limit) for name, each in played},
            **{f"{name}_command": list(each.command) for name, each in played},
            **{f"{name}_options": dict(each.options) for name, each in played},
        }

    def cut_back(self) -> None:
        """Take half a game, as a full disk leaves it, off the end of each file of games.

        Raises:
          ValueError: a file is a link, or its end is longer than a game.
        """
        for name in ("games.pgn", *(f"{each}.pgn" for each in _LAST)):
            path = self.folder / name
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise ValueError(f"--output_dir: expected {name} to be a file of its own, got {str(path)!r}")
            if path.exists() and (lost := cut_to_whole_games(path)):
                print(f"{name} ended amid a game: its last {lost} bytes were cut off.")

    def read(self, name: str = "games.pgn") -> SparringGames:
        """Return the games that are there already."""
        return SparringGames.read(self.folder / name, self.opponent.name, own=True)

    def plan(self, games: SparringGames, *, last: bool = False) -> Preparation:
        """Return a book by these games, for the next round or for the last match."""
        hope = _HOPE if self.random else 0.0
        left = seconds_left() / 60.0
        minutes = min(_MINUTES, left if last else _LOOKING * left)
        with prepare.looking_until(minutes) as enough, limited(None):
            return sparring.prepare_from_games(
                *(self.settings, self.engines, games),
                budget=self.given.budget,
                max_evaluations=self.given.max_evaluations,
                enough=enough,
                doubt=_DOUBT if last else -hope,
                optimism=_OPTIMISM if self.random else None,
                clock=self.clock,
            )

    def play(self, title: str, parts: Sequence[tuple[Book, str, range]]) -> None:
        """Play games, each of which is in its file when it has ended.

        parts: in turn, the book, the round's number or the name of a match at the end, and the numbers of
          its games.
        """
        done = itertools.count(1)
        with bar(title, "games", sum(len(numbers) for *_, numbers in parts)) as show:
            for book, name, numbers in parts:
                event = {"Event": f"Sparring, {title.lower()}"}
                headers = [event | {"Round": f"{name}.{k + 1}"} for k in numbers]
                seed = (self.settings.seed, _LAST[name] if name in _LAST else int(name), numbers.start, 1)
                path = self.folder / (f"{name}.pgn" if name in _LAST else "games.pgn")
                with open(path, "a", encoding="utf-8") as out:

                    def ended(text: str, out: TextIO = out) -> None:
                        out.write(text)
                        out.flush()
                        os.fsync(out.fileno())
                        show(next(done))

                    how = {"seed": seed, "concurrency": self.given.concurrency}
                    play_engine_games(book, self.own, self.opponent, headers, ended, **how)

    def rounds(self) -> list[_Round]:
        """Play what is left of the games to learn from, round by round."""
        size = self.given.round if self.random else 1
        finished: list[_Round] = []
        before: list[Any] | None = None
        games = self.read()
        for number, first in enumerate(range(0, self.given.play, size)):
            last = min(first + size, self.given.play)
            there = len(games.records)
            if there >= last:  # played by an earlier run
                finished.append(self._round(number, games, first, last))
                continue
            if time_is_up():
                break
            book, what = self.no_book, "no book"
            if number:
                made = self.plan(games)
                book = made.book
                what = f"{len(book)} positions, expected {points(made.utility)}"
                self._tell_changes(games, finished[-1:], book)
            moves = [(position.history, position.moves) for position in book.positions]
            if not self.random and moves == before:
                print("The book is the same, and nothing is random: the game would be, too.")
                break
            self.play(f"Round {number}", [(book, str(number), range(there - first, last - first))])
            before, games = moves, self.read()
            if len(games.records) < last:
                print(f"{len(games.records)} of {self.given.play} games, as there was time for by --minutes.")
            if len(games.records) == there:
                break
            finished.append(self._round(number, games, first, last))
            print(f"Round {number:<14}scored {finished[-1]} ({what})")
        return finished

    def _round(self, number: int, games: SparringGames, first: int, last: int) -> _Round:
        scores = {id(record): score for record, score in games.against(self.settings)}
        played = map(id, games.records[first:last])
        return _Round(number, [scores[record] for record in played if record in scores])

    def _tell_changes(self, games: SparringGames, rounds: Sequence[_Round], book: Book) -> None:
        """Print which lines of the last round, or of all games, were lost, and what a book plays there."""
        played = games.against(self.settings)
        played = played[-len(rounds[-1].scores) :] if rounds and rounds[-1].scores else played
        lines = [line for line in sparring.played_lines(played, self.settings, book) if line.score < 1.0]
        if lines:
            rows = []
            for line in lines[:_LINES]:
                san = self.no_book.start.variation_san(line.moves) or "(start)"
                rows.append((line.games, points(line.score), line.now, _files.end_of(san, 70)))
            _files.print_table(rows, ("games", "score", "now", "left the book after"))

    def last_book(self) -> Preparation:
        """Return the book that all games make; where its match has begun, the one that it began with."""
        games, count = self.read(), len(self.read("last.pgn").records)
        if count and (self.folder / "result.json").is_file():
            made = Preparation.read(self.folder)
            if (made.settings.player, made.settings.fen) != (self.settings.player, self.settings.fen):
                raise ValueError(
                    f"--output_dir: expected the last book of these games, got {str(self.folder)!r} with "
                    "that of another side or start position"
                )
            # File names are made of this number, which is a number whatever the file contains.
            played = made.search.games["played"] if isinstance(made.search, BySparring) else 0
            if played == len(games.records):
                return made
            os.replace(self.folder / "last.pgn", self.folder / f"last_{played}.pgn")
        made = self._finished(games, "\nBy all games:" if games.records else "")
        print(
            f"The last book       {len(made.book)} positions, {points(made.utility)} or more expected by "
            f"{len(games.records)} games"
        )
        return made

    def _finished(self, games: SparringGames, title: str) -> Preparation:
        """Make the book by games, with its exits and with settings that name the games, and write it."""
        made = self.plan(games, last=True)
        policies, settings = sparring.informed_policies(self.settings, self.engines, games), self.settings
        if isinstance(policies.sigma[1 - settings.player], GamesPolicy):
            settings = dataclasses.replace(settings, opponent=sparring.spec_of_games(settings, games))
        made = with_exits(dataclasses.replace(made, settings=settings), self.engines, policies)
        made.write(self.folder)
        if title:
            print(title)
            self._tell_changes(games, (), made.book)
        return made

    def last(self, made: Preparation) -> tuple[list[float], list[float]]:
        """Play what is left of the games that teach nothing; return the scores with and without a book.

        Matches take turns, since an engine's play under a clock also depends on other work of the machine.
        """
        count = self.given.last if self.random else min(1, self.given.last)
        books = {"last": made.book} | ({"without": self.no_book} if self.random else {})
        turn = max(_TURN, self.given.concurrency)
        there = {name: len(self.read(f"{name}.pgn").records) for name in books}
        parts = [
            (book, name, range(max(begin, there[name]), min(begin + turn, count)))
            for begin in range(0, count, turn)
            for name, book in books.items()
            if there[name] < min(begin + turn, count)
        ]
        if parts:
            self.play("Last match", parts)
        scores, others = ([s for _, s in self.read(f"{name}.pgn").against(self.settings)] for name in _LAST)
        return scores, others

    def learn(self) -> None:
        """Make the book by the games of a file."""
        games = SparringGames.read(self.given.games, self.given.opponent_name)
        print(f"Games               {games.report}")
        played = games.against(self.settings)
        if not played:
            color = chess.COLOR_NAMES[not self.side]
            raise ValueError(
                f"--games: expected finished games in which {self.given.opponent_name!r} has {color} from "
                f"the start position, got none in {self.given.games!r}"
            )
        made = self._finished(games, f"Scored              {_Round(0, [score for _, score in played])}")
        worth = f"{points(made.utility)} or more expected by these games"
        print(f"The book            {len(made.book)} positions, {worth}")
        self._tell_files()

    def tell(
        self, made: Preparation, rounds: Sequence[_Round], scores: Sequence[float], others: Sequence[float]
    ) -> None:
        """Print and write the result of the last match beside games without a book, and scores by round."""
        without = _Round(0, [*(rounds[0].scores if rounds else ()), *others])
        last = _Round(len(rounds), scores)
        if scores:
            low, high = mean_interval(np.array(scores), 0.0, 1.0)
            beside = f"; without a book {without}" if without.scores else ""
            print(f"Promise             {last} (95 %: {range_words((low, high))}){beside}")
            if len(scores) > 1 and len(without.scores) > 1:
                gain, error = last.score - without.score, math.hypot(last.error, without.error)
                print(f"Gain                {signed_points(gain)} +- {points(error)}")
            print(f"Elo                 {MatchStatistics.of_scores(scores)}")
            if last.score <= without.score:
                print("No more than without a book, so no advice: more --play or --minutes look further.")
            assert isinstance(made.search, BySparring)
            certain = last.error if len(scores) > 1 else None
            search = dataclasses.replace(made.search, interval=(low, high), standard_error=certain)
            unprepared = without.score if without.scores else made.unprepared
            worth: dict[str, Any] = {"utility": last.score, "unprepared": unprepared, "value": last.score}
            dataclasses.replace(made, search=search, **worth).write(self.folder)
        rows = [{"round": each.number, "games": len(each.scores), "score": each.score} for each in rounds]
        if rows:
            _files.write_csv(self.folder / "rounds.csv", rows)
            self._plot(rounds, last, without)
        played = "".join(f", {name}.pgn" for name in _LAST if (self.folder / f"{name}.pgn").is_file())
        self._tell_files((", games.pgn, rounds.csv, rounds.png" if rows else "") + played)

    def _tell_files(self, more: str = "") -> None:
        print(f"Written: {self.folder}/book.bin (Polyglot), book.pgn (variations), result.json{more}")

    def _plot(self, rounds: Sequence[_Round], last: _Round, without: _Round) -> None:
        """Plot the score by round, that of the last match, and that without a book."""
        below = "round, each with a book made from the games of those before"
        beside = "points in 100 games, and their standard error"
        with _files.points_figure(self.folder / "rounds.png", below, beside) as axes:
            matches = [last] if last.scores else []
            for label, style, played in (
                ("rounds", "o-", rounds),
                (f"{len(last.scores)} last games", "D", matches),
            ):
                numbers, values = [each.number for each in played], [each.score for each in played]
                errors = [each.error for each in played]
                axes.errorbar(numbers, values, errors, fmt=style, capsize=3, label=label)
            alone = f"without a book, {counted(len(without.scores), 'game')}"
            axes.axhline(without.score, color="0.5", ls="--", lw=1.0, label=alone)
            axes.set_ylim(0.0, 1.02)
            axes.xaxis.get_major_locator().set_params(integer=True)
            side = chess.COLOR_NAMES[self.side].capitalize()
            axes.set_title(f"{side} against {self.opponent.name}, {self.opponent.limit}")


def _draws(engine: MatchEngine) -> bool:
    """Return whether an engine's options make it play at random."""
    texts = [f"{name}={value}" for name, value in engine.options.items()]
    threads = any(re.fullmatch(r"(?i)threads=(?!1$).*", text) for text in texts)
    return threads or bool(weakened_by(f"{engine.name} [{', '.join(texts)}]"))
