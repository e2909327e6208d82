r"""A UCI engine with a book: the entry point `precomp-games-uci`.

  precomp-games-uci --book=output/chess_preparation/book.bin --engine=stockfish
  precomp-games-uci --book=output/chess_preparation --play=model
  precomp-games-uci --opponent=output/chess_preparation
  precomp-games-uci --play="human(rating=1500)" --maia=networks

The first plays a Polyglot book and then an engine, in any interface; the book may also be a folder of
`precomp-games prepare`, whose lines are then followed from the start. With --play=model it plays out of
book as modelled in the preparation. The third is the opponent that the preparation was made against, to spar
with, and the fourth is a policy by name, here people of a rating.

Engines and their options are those of the flags, as the preparation was given them, and must be the
preparation's. What a folder names is neither run nor opened.
"""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from collections.abc import Sequence

from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import one_line, shown
from precomp_games._support.config import config
from precomp_games.chess.engines.pool import EngineError, EnginePool, find_engine
from precomp_games.chess.engines.searches import identity_options, named_options
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.engines.stored_engine import StoredEngine
from precomp_games.chess.game import ChessGame
from precomp_games.chess.model.model import modelled_play
from precomp_games.chess.model.opponents import opponent_policy
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.preparation import Preparation
from precomp_games.chess.play.players import LONGEST_LINE, EnginePlayer, PolicyPlayer
from precomp_games.chess.play.uci_engine import UciEngine, uci_book
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands import _flags
from precomp_games.policies.specs import check_spec

_MOST_OPTIONS = 8  # of an identity, in an error


@dataclasses.dataclass
class Flags:
    """Flags of the player.

    Attributes:
      book: A Polyglot file, or an output folder of precomp-games prepare.
      play: The player out of book: the engine, as the interface asks it; our play as modelled in the
        preparation in --book (model); or a policy by name, such as human(rating=1500), which needs no --book.
      opponent: An output folder of precomp-games prepare: play the opponent that it was made against.
      opponent_spec: With --opponent: the preparation's --opponent, repeated word for word, if it names
        files or an engine that may be opened and run again.
      seed: Seed of random moves. Default: other games each time.
      help: Show this help.
    """

    book: str | None = None
    play: str = "engine"
    opponent: str | None = None
    opponent_spec: str | None = None
    seed: checks.NonNegativeInt | None = None
    help: bool = False


def main(argv: Sequence[str] | None = None) -> int:
    """Play until "quit" or the end of the input; return the exit status.

    Args:
      argv: the command line; by default the process's.
    """
    given = flags.FlagValues()  # type: ignore[no-untyped-call]
    _flags.define_flags(given, Flags, _flags.EngineFlags, without=("workers", "cluster"), store=":memory:")
    try:
        rest = given(list(sys.argv if argv is None else argv))
        if given["help"].value:
            print(f"{__doc__}\nflags:\n\n{given.get_help()}")
            return 0
        if len(rest) > 1:
            raise ValueError(f"expected flags alone, got {rest[1]!r}; see --help")
        with config(networks=given.maia):  # which are read at once
            engine = _player(given)
    except (flags.Error, ValueError, OSError, EngineError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    for stream in (sys.stdin, sys.stdout):  # text outside of their encoding must not end the run
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        engine.run(iter(lambda: sys.stdin.readline(LONGEST_LINE), ""))
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)  # the listener is gone; searches are stored or not wanted
    return 0


def _player(given: flags.FlagValues) -> UciEngine:
    """Return a preparation's modelled opponent; or the book, followed by the engine or our modelled play."""
    path, spec = given.book, given.play not in ("engine", "model")
    if spec:
        check_spec(given.play, "--play (engine, model)")
    if given.opponent is not None:
        if path is not None or given.play != "engine":
            raise ValueError("--opponent: expected no --book and no --play beside it")
        return _modelled(given, Preparation.read(given.opponent))
    if path is None and not spec:
        raise ValueError("--book: expected a Polyglot file or a folder, got none; see --help")
    if path is not None and not os.path.exists(path):
        raise ValueError(f"--book: expected a Polyglot file or a folder, got {path!r}, which is not there")
    preparation = Preparation.read(path) if path is not None and os.path.isdir(path) else None
    if given.play != "model":
        book = None if path is None else uci_book(preparation.book if preparation else path)
        player = _by_spec(given) if spec else EnginePlayer(find_engine(given.engine))
        return UciEngine(player, book, say=_say, seed=given.seed)
    if preparation is None:
        expected = f"--book to be an output folder of precomp-games prepare, got {path!r}"
        raise ValueError(f"--play=model: expected {expected}")
    return _modelled(given, preparation)


def _by_spec(given: flags.FlagValues) -> PolicyPlayer:
    """Return a player that plays a policy given by name."""
    policy = opponent_policy(ChessGame(), given.play, trusted=True)
    name = OpponentWords(PreparationSettings(opponent=given.play), "").title
    return PolicyPlayer(policy, one_line(name), given.seed)


def _modelled(given: flags.FlagValues, preparation: Preparation) -> UciEngine:
    """Return the opponent of a preparation, where --opponent names it, or our own play by it."""
    settings, own = preparation.settings, given.opponent is None
    if given.opponent_spec is not None:
        if own or given.opponent_spec != settings.opponent:
            raise ValueError(
                "--opponent_spec: expected the spec of the preparation that --opponent names, "
                f"{shown(settings.opponent)}, got {shown(given.opponent_spec)}"
            )
        settings = dataclasses.replace(settings, trusted=True)
    engine = _engine_of_flags(given, preparation.engines[0 if own else 1], opponent=not own)
    opponent = OpponentWords(settings, preparation.engines[1]).name
    name = one_line(f"{'own play' if own else 'opponent'} of a preparation, {opponent}")
    try:
        policy = modelled_play(settings, settings.player if own else 1 - settings.player, engine)
    except ValueError as error:
        repeats = "; --opponent_spec repeats it, for a folder of your own"
        hint = repeats if not own and "opponent" in settings.touches and not settings.trusted else ""
        raise ValueError(f"{error}{hint}") from None
    known = uci_book(preparation.book) if own and preparation.book else None
    return UciEngine(PolicyPlayer(policy, name, given.seed), known, say=_say, seed=given.seed)


def _engine_of_flags(given: flags.FlagValues, wanted: str, *, opponent: bool) -> StoredEngine:
    """Return the engine of the flags, whose identity must be that of the preparation."""
    other = opponent and (given.opponent_engine is not None or given.opponent_option)
    which, option = ("opponent_engine", "opponent_option") if other else ("engine", "engine_option")
    command = find_engine(given.opponent_engine if other and given.opponent_engine else given.engine)
    options = named_options(given[option].value, option)
    pool = EnginePool(command, workers=1, options=options)
    if pool.engine_id != wanted:
        pool.close()
        asked = " ".join(f"--{option}={shown(text)}" for text in identity_options(wanted)[:_MOST_OPTIONS])
        raise ValueError(
            f"--{which}: expected the engine that the preparation was made with, {shown(wanted)}, got "
            f"{shown(pool.engine_id)}{f'; its options, which may write, would be {asked}' if asked else ''}"
        )
    return StoredEngine(EvaluationStore(given.store), pool)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
