r"""Prepares against an engine by playing against it: prepare, play, learn from the games, prepare again.

  precomp-games spar --side=white --opponent_movetime_ms=50 --output_dir=output/sparring
  precomp-games spar --side=black --clock=1+0.01
  precomp-games spar --games=match.pgn --opponent_name="Stockfish 15.1"

The opponent is an engine as match programs play it: two processes, all moves of the game so far, a limit for
each move or a clock. What it plays is in its games. Behind them is, where time limits it, a search from
scratch that visits once to ten times the nodes of its time, of whose moves it plays any that is about as good
as the best one, and otherwise what the engine answers to whoever plays so far to it (--opponent_plays=game).
The first games are played without a book. After each round of --round games the book is made anew, from all
games so far: they say what the opponent plays, and their scores what it is worth to leave the book there.
Where games are random, such a book goes where few games have been, to learn what that is worth. When --play
games are played, the last book is made, which goes where games have scored, and --last fresh games, which
teach nothing, say what it is worth, beside as many without a book. Where nothing is random, a round is one
game, and so is the last match, and what there is without a book is the first round.
Before any game, time also decides what play after the book is taken to be worth: --calibration=engines,
unless another one is named.

Games are kept as they end, so that a run that was ended goes on where it was: the folder is the state. With a
larger --play it goes on from there as well, and the last match of before is put aside. With --games nothing
is played: the games of another match program, with the comment "book" at moves of the book, are what is
learned from.

Writes games.pgn, last.pgn and without.pgn, with evaluations and clocks; book.bin (Polyglot), book.pgn
(variations) and result.json, as `precomp-games prepare` does; rounds.csv and rounds.png, how the score grew.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from absl import flags

from precomp_games._support.deadlines import limited, part
from precomp_games._support.files import read_json
from precomp_games._support.validation import Ge, Le, NonNegativeInt, PositiveInt, shown
from precomp_games.chess.engines.pool import Demand, EngineError, engine_troubles, find_engine
from precomp_games.chess.engines.searches import SearchLimit, weakened_by
from precomp_games.chess.play.engine_games import Clock
from precomp_games.chess.preparation.model import Engines
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.commands._app import run_command
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import output_folder, write_json
from precomp_games.commands._flags import (
    MinutesFlags,
    Repeated,
    define_chess_flags,
    define_flags,
    settings_of,
)
from precomp_games.commands._sparring import Sparring

_CALIBRATION = "engines"  # under a clock
# What an engine under a clock plays with the games before it in its hash, as searches by nodes from scratch:
# so many times what it visits in its time in the start position. Of its best moves it plays any that are
# about as good, by a temperature in centipawns. See docs/sparring.md.
_TIMES = (1.0, 2.2, 4.6, 10.0)
_REPLIES, _REPLIES_R = 4, 5.0
_LEAST = 1e-3  # less likely replies of it are not looked at: a temperature gives all moves something
_ROUNDS = 0.6  # of --minutes; half of the others are for the last book, and the rest for its match


@dataclasses.dataclass
class Flags:
    """Who plays whom, and how often.

    Attributes:
      side: Who prepares.
      clock: Seconds and increment that each side has for a game, such as 1+0.01, in place of a limit for
        each move.
      own_engine: UCI engine that plays for us where the book ends. Default: that of --engine.
      own_option: UCI option of it, "Name=value"; may be repeated.
      play: Games to learn from, the first ones without a book.
      round: Games of a round, after which the book is made anew.
      last: Games at the end, which say what the book is worth; where games are random, as many without a
        book are played in turns with them.
      concurrency: Games that are played side by side. More than there are cores take each other's time.
      budget: Learn at most so many positions, as well as possible.
      max_evaluations: Stop looking after so many evaluations.
      games: A PGN file to learn from; nothing is played.
      opponent_name: With --games: the opponent's name there.
      output_dir: Where files go, and where a run goes on that was ended.
    """

    side: Literal["white", "black"] = "white"
    clock: str | None = None
    own_engine: str | None = None
    own_option: Repeated = ()
    play: NonNegativeInt = 200
    round: PositiveInt = 20
    last: NonNegativeInt = 100
    concurrency: Annotated[int, Ge(1), Le(256)] = 1
    budget: NonNegativeInt = 400
    max_evaluations: PositiveInt = 20_000
    games: str | None = None
    opponent_name: str | None = None
    output_dir: str = "output/sparring"


def define(own: flags.FlagValues) -> None:
    """Defines the flags."""
    define_flags(own, Flags, MinutesFlags)
    without = ("opponent_temperature_cp", "opponent_weights", "distrust", "price")
    plays = {"opponent_plays": "game", "opponent_samples": 1, "evaluation": "calibrated"}
    define_chess_flags(own, without, analyst_nodes=50_000, penalty=3e-5, menu=4, **plays)


def run(given: flags.FlagValues) -> None:
    """Spars by the flags."""
    settings = _settings(given)
    folder = output_folder(given.output_dir)
    with open_engines(given, settings) as engines:
        if not engines.can_search:
            raise EngineError("expected an engine to play games, got stored searches alone")
        work = Sparring(given, _with_clock(given, settings, engines), engines)
        if given.games is not None:
            work.learn()
            return
        _check_conditions(folder / "sparring.json", work.conditions())
        work.cut_back()
        print(
            f"{given.side.capitalize()}, against {engines.opponent.engine_id} ({work.opponent.limit}), "
            f"by {given.play} games and {given.last} at the end; out of book we have {work.own.limit}.",
            flush=True,
        )
        with part(_ROUNDS):
            told = work.rounds()
        with part(0.5):
            made = work.last_book()
        work.tell(made, told, *work.last(made))


def _settings(given: flags.FlagValues) -> PreparationSettings:
    """The settings of the flags; a wrong one is an error before any work."""
    if (given.games is None) != (given.opponent_name is None):
        raise ValueError("--games: expected --opponent_name with it, and neither without the other")
    if given.games is not None and not os.path.isfile(given.games):
        raise ValueError(f"--games: expected a PGN file, got {given.games!r}")
    if given.evaluation != "calibrated" or given.menu < 1:
        raise ValueError(
            "--evaluation: expected calibrated, and a --menu of 1 or more, got "
            f"{given.evaluation} and {given.menu}"
        )
    settings = settings_of(given, 0 if given.side == "white" else 1)
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
    """Settings in which an opponent under a clock is an engine that visits more nodes or fewer.

    How many it visits in its time here is asked once, in the start position. One that plays other moves than
    it finds is asked in games. Play after the book is worth what it was in games of engines under a clock.
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
        print(
            f"{engines.opponent.engine_id} keeps no limit of nodes: behind its games is what it answers in "
            "games by time.",
            flush=True,
        )
        return settings
    each = (max(1, round(share * result.nodes)) for share in _TIMES)
    plays = ",".join(
        f"{letter}=uci(nodes={nodes},r={_REPLIES_R:g},top_k={_REPLIES})"
        for letter, nodes in zip("abcd", each, strict=True)
    )
    spec = f"mixture({plays},per=move)"
    return dataclasses.replace(settings, opponent=spec, min_probability=_LEAST)


def _check_conditions(path: pathlib.Path, now: dict[str, Any]) -> None:
    """Refuses to go on with games that were played under other conditions."""
    try:
        before = read_json(path)
    except FileNotFoundError:
        write_json(path, now)
        return
    except ValueError as error:
        raise ValueError(
            f"--output_dir: expected a new folder, or one of this command, got {str(path)!r} ({error})"
        ) from None
    for name, value in now.items():
        if type(before.get(name)) is not type(value) or before[name] != value:
            raise ValueError(
                f"--output_dir: expected a new folder, or games with {name} {value!r}, got {path.parent} "
                f"with {shown(before.get(name))}"
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return run_command(__doc__, define, run, argv)
