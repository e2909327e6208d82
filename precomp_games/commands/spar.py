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
from typing import Any

from absl import flags

from precomp_games._support.checks import shown
from precomp_games._support.deadlines import limited, part
from precomp_games._support.files import read_json
from precomp_games.chess.engines.pool import Demand, EngineError, engine_troubles, find_engine
from precomp_games.chess.engines.searches import SearchLimit, weakened_by
from precomp_games.chess.play.engine_games import Clock
from precomp_games.chess.preparation.model import Engines
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.commands._app import run_command
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import output_folder, write_json
from precomp_games.commands._flags import (
    Define,
    define_chess_flags,
    define_menu_flags,
    define_minutes_flag,
    define_opponent_flag,
    settings_of,
)
from precomp_games.commands._sparring import Sparring

_CALIBRATION = "engines"  # under a clock
_R = 10.0  # centipawns, of an opponent that plays by its scores
# What an engine under a clock plays with the games before it in its hash, as searches by nodes from scratch:
# so many times what it visits in its time in the start position. Of its best moves it plays any that are
# about as good, by a temperature in centipawns. See docs/sparring.md.
_TIMES = (1.0, 2.2, 4.6, 10.0)
_REPLIES, _REPLIES_R = 4, 5.0
_LEAST = 1e-3  # less likely replies of it are not looked at: a temperature gives all moves something
_ROUNDS = 0.6  # of --minutes; half of the others are for the last book, and the rest for its match


def define(own: flags.FlagValues) -> None:
    """Defines the flags."""
    define = Define(own)
    define.enum("side", "white", ["white", "black"], "Who prepares.")
    define.string(
        "clock",
        None,
        "Seconds and increment that each side has for a game, such as 1+0.01, in place of a limit for each "
        "move.",
    )
    define.string(
        "own_engine", None, "UCI engine that plays for us where the book ends. Default: that of --engine."
    )
    define.multi_string("own_option", [], 'UCI option of it, "Name=value"; may be repeated.')
    define.integer("play", 200, "Games to learn from, the first ones without a book.", lower_bound=0)
    define.integer("round", 20, "Games of a round, after which the book is made anew.", lower_bound=1)
    define.integer(
        "last",
        100,
        "Games at the end, which say what the book is worth; where games are random, as many without a book "
        "are played in turns with them.",
        lower_bound=0,
    )
    define.integer(
        "concurrency",
        1,
        "Games that are played side by side. More than there are cores take each other's time.",
        lower_bound=1,
        upper_bound=256,
    )
    define.integer("budget", 400, "Learn at most so many positions, as well as possible.", lower_bound=0)
    define_minutes_flag(own)
    define.integer("max_evaluations", 20_000, "Stop looking after so many evaluations.", lower_bound=1)
    define.string("games", None, "A PGN file to learn from; nothing is played.")
    define.string("opponent_name", None, "With --games: the opponent's name there.")
    define_chess_flags(own)
    define_opponent_flag(own)
    define_menu_flags(own, 4, "")
    define.string("output_dir", "output/sparring", "Where files go, and where a run goes on that was ended.")
    own.set_default("evaluation", "calibrated")
    own.set_default("opponent_plays", "game")
    own.set_default("opponent_samples", 1)
    own.set_default("analyst_nodes", 50_000)
    own.set_default("penalty", 3e-5)


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
    settings = settings_of(
        given,
        0 if given.side == "white" else 1,
        _R,
        evaluated=True,
        menu=(given.menu, given.menu_window_cp),
        opponent=given.opponent,
    )
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
