r"""Estimates an opponent's search, its r and its number of moves: those that fit its moves best.

The opponent of `precomp-games prepare` plays the k best moves of an engine's search with probabilities
proportional to exp(cp / r). This command estimates the nodes of its search, r and k, with an interval, and
how often it lapses into any legal move. For a person, by games:

  precomp-games estimate --pgn=games.pgn --player="Karpov Anatoli" --skip_plies=20

and for an engine, by its moves in games with itself, or in the positions of --pgn:

  precomp-games estimate --opponent_option="Skill Level=5"

--engine is the model's engine, --nodes the node limits to try, and --top_k_values the numbers of moves to
try. Writes result.json.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted
from precomp_games._support.deadlines import part, sample_in_time
from precomp_games._support.results import as_json
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.engines.searches import MAX_LIMIT, SearchLimit
from precomp_games.chess.model.estimation import Choice, OpponentFit, fit_opponent, opponent_choices
from precomp_games.chess.model.model import Engines
from precomp_games.chess.model.played import Moves, engine_moves, pgn_moves, played_in
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.commands import _app, _chess, _files, _flags

_PLAYING = 0.3  # of --minutes, where an engine's moves are to be seen first
_FIRST = 16  # positions that are looked at in any case
_SEARCHING = 0.5  # of the others; the rest is for fits
STOPS = True
"""Ctrl-C, pressed once, ends the work as --minutes does."""


@dataclasses.dataclass
class Flags:
    """Flags of the moves to fit to, and of the fit.

    Attributes:
      pgn: PGN file of games: their moves are fitted, or an engine is asked for moves in their positions.
      player: Fit only this player's moves in --pgn, by its name in the tags. Default: everyone's.
      skip_plies: Half-moves at the start of each game in --pgn that are left out.
      games: Number of games that an engine plays with itself.
      plies: Half-moves of each of them.
      positions: Search at most so many positions, drawn with --seed.
      nodes: Node limits of the model's searches to try.
      top_k_values: Numbers of candidate moves to try.
      confidence: Confidence of the interval of r.
      output_dir: Where files go.
    """

    pgn: str | None = None
    player: str | None = None
    skip_plies: checks.NonNegativeInt = 16
    games: checks.PositiveInt = 20
    plies: checks.PositiveInt = 40
    positions: checks.PositiveInt = 1000
    nodes: _flags.Listed = ("250", "500", "1000", "2000", "4000")
    top_k_values: _flags.Listed = ("2", "3", "5")
    confidence: float = 0.95
    output_dir: str = "output/estimate_opponent"


def define(own: flags.FlagValues) -> None:
    """Define the flags: those of engines, and its own."""
    _flags.define_flags(own, Flags, _flags.MinutesFlags)
    asked = {"opponent_limit", "opponent_samples", "seed"}
    _flags.define_chess_flags(own, {field.name for field in dataclasses.fields(PreparationSettings)} - asked)


def run(given: flags.FlagValues) -> None:
    """Fit nodes and r to the moves of a player, for each number of moves."""
    allowed = "integers from 2 to 500 separated by commas"
    top_ks = _flags.numbers(given["top_k_values"], allowed, lambda k: 2 <= k <= 500, int)
    limits = _flags.numbers(given["nodes"], "whole numbers above 0", lambda n: 1 <= n <= MAX_LIMIT, int)
    if not 0.0 < given.confidence < 1.0:
        raise ValueError(f"--confidence: expected a number between 0 and 1, got {given.confidence}")
    if given.player is not None and given.pgn is None:
        raise ValueError("--player: expected --pgn with it, got none")
    folder = _app.output_folder(given.output_dir)
    searched = {"analyst_limit": SearchLimit(nodes=max(limits)), "top_k": max(top_ks)}
    settings = _flags.settings_of(given, 0, opponent_plays="bestmove", **searched)  # whose answers are read
    with _chess.open_engines(given, settings) as engines:
        with part(_PLAYING):
            name, every = _observed(given, engines)
        epds = list(dict.fromkeys(epd for epd, _ in every))

        def looked(drawn: list[str]) -> tuple[Moves, dict[tuple[int, int], list[Choice]]]:
            moves = _moves_at(every, drawn)
            return moves, {
                (top_k, nodes): opponent_choices(engines.analyst, SearchLimit(nodes=nodes), top_k, moves)
                for top_k, nodes in itertools.product(top_ks, limits)
            }

        how: dict[str, Any] = {"seed": given.seed, "share": _SEARCHING, "first": _FIRST}
        looked_at, (moves, choices) = sample_in_time(epds, looked, **how)
        fits = {kind: fit_opponent(each, confidence=given.confidence) for kind, each in choices.items()}
        model = engines.analyst.engine_id
    if looked_at < len(epds):
        print(f"{looked_at} of {counted(len(epds), 'position')}, drawn with --seed, as --minutes allow.")
    best = max(fits, key=lambda kind: fits[kind].log_likelihood)
    positions = len({epd for epd, _ in moves})
    print(f"{name}: {fits[best].moves} moves in {positions} positions, by {model}\n")
    _print_fits(fits, best)
    result = {"opponent": name, "model": model, "positions": looked_at}
    result |= {"best_top_k": best[0], "best_nodes": best[1]}
    result["fits"] = [
        # None is an interval's end that there is not.
        as_json(dataclasses.asdict(fit) | {"top_k": top_k, "nodes": nodes, "bits": fit.bits})
        | {"interval": as_json(fit.interval), "explained": fit.explained}
        for (top_k, nodes), fit in fits.items()
    ]
    _files.write_json(folder / "result.json", result)
    print(f"Written: {folder}/result.json")


def _observed(given: flags.FlagValues, engines: Engines) -> tuple[str, Moves]:
    """Return the player's name, and how often each (position, move) was played."""
    limit, opponent = _flags.given_in(given)["opponent_limit"], engines.opponent
    name, how = f"{opponent.engine_id} ({limit})", {"samples": given.opponent_samples}
    if given.pgn is None:
        how |= {"games": given.games, "plies": given.plies, "seed": given.seed}
        return name, _sampled(given, engine_moves(opponent, limit, **how))
    report = GameReport()
    moves = pgn_moves(given.pgn, given.player, skip_plies=given.skip_plies, report=report)
    print(f"{'Games':<20}{report}")
    moves = _sampled(given, moves)
    if given.opponent_engine is None and not given.opponent_option:
        return given.player or "everyone", moves
    return name, played_in(opponent, limit, list(dict.fromkeys(epd for epd, _ in moves)), **how)


def _sampled(given: flags.FlagValues, moves: Moves) -> Moves:
    """Return all moves in --positions of the positions at most, drawn."""
    epds = list(dict.fromkeys(epd for epd, _ in moves))
    if len(epds) <= given.positions:
        return moves
    drawn = np.random.default_rng(given.seed).choice(len(epds), given.positions, replace=False)
    return _moves_at(moves, [epds[k] for k in drawn])


def _moves_at(moves: Moves, epds: Sequence[str]) -> Moves:
    """Return the moves in some positions."""
    kept = set(epds)
    return {key: count for key, count in moves.items() if key[0] in kept}


def _print_fits(fits: Mapping[tuple[int, int], OpponentFit], best: tuple[int, int]) -> None:
    """Print the fit for each number of moves and limit, and the meaning of the best one."""
    fitted = fits[best]
    rows = [
        (
            *(str(top_k), str(nodes), f"{fit.temperature_cp:.1f}"),
            *(f"{fit.interval[0]:.1f} to {fit.interval[1]:.1f}", f"{100 * fit.lapse:.1f}%"),
            *(f"{100 * fit.outside / fit.moves:.1f}%", f"{fit.bits:.3f}"),
        )
        for (top_k, nodes), fit in fits.items()
    ]
    percent = f"{100 * fitted.confidence:g}%"
    _files.print_table(rows, ("k", "nodes", "r", f"{percent} of r", "lapses", "outside", "bits a move"))
    uniform = -fitted.uniform_log_likelihood / fitted.moves / math.log(2.0)
    print(
        f"\nBest: --opponent_nodes={best[1]} --r={fitted.temperature_cp:.3g} --top_k={best[0]} (any legal "
        f"move, drawn: {uniform:.3f} bits). The {percent} take the model for true."
    )
    if not fitted.explained:
        print(
            "No engine of the model's kind with these nodes explains these moves: "
            f"{100 * fitted.lapse:.0f} of 100 are lapses, and such an engine has none. Try other --nodes or "
            "--top_k_values, or, for an engine, --opponent_plays=bestmove or game in the preparation; of a "
            "person, games say more."
        )
