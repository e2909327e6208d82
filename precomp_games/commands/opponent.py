r"""How random is this opponent? The r and the number of moves that fit what it plays best, with an interval.

The opponent of `precomp-games prepare` plays the k best moves of an engine's search with probabilities
proportional to exp(cp / r). This says which r and k, and how often none of it holds. Of a person, by games:

  precomp-games opponent --pgn=games.pgn --player="Karpov Anatoli" --skip_plies=20

and of an engine, by what it answers in games with itself, or in the positions of --pgn:

  precomp-games opponent --opponent_option="Skill Level=5"

--engine is the model's engine, --opponent_nodes what it searches. Writes result.json.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
from absl import flags

from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.opponents.estimation import OpponentFit, fit_opponent, opponent_choices
from precomp_games.chess.opponents.played import Moves, engine_moves, pgn_moves, played_in
from precomp_games.chess.preparation.engines import Engines
from precomp_games.commands._app import run_command
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import output_folder, print_table, write_json
from precomp_games.commands._flags import Define, define_chess_flags, numbers

_MANY_LAPSES = 0.2


def define(own: flags.FlagValues) -> None:
    """Defines the flags: those of engines, and its own."""
    define = Define(own)
    define.string("pgn", None, "Games: whose moves are fitted, or where an engine is asked.")
    define.string(
        "player",
        None,
        "Whose moves in --pgn, as its White and Black tags have the name. Default: everyone's.",
    )
    define.integer(
        "skip_plies", 16, "Half-moves at the start of each game in --pgn that are left out.", lower_bound=0
    )
    define.integer("games", 20, "An engine's games with itself.", lower_bound=1)
    define.integer("plies", 40, "Half-moves of each of them.", lower_bound=1)
    define.integer(
        "positions", 1000, "At most so many positions are looked at, drawn with --seed.", lower_bound=1
    )
    define.integer(
        "played_nodes",
        None,
        "Nodes a move of an engine that is fitted. Default: --opponent_nodes.",
        lower_bound=1,
    )
    define.list("top_k_values", ["2", "3", "5"], "Numbers of moves to try.")
    define.float("confidence", 0.95, "How often the interval shall have the true r in it.")
    define.string("output_dir", "output/estimate_opponent", "Where files go.")
    define_chess_flags(own)


def run(given: flags.FlagValues) -> None:
    """Fits r to the moves of a player, for each number of moves."""
    top_ks = numbers(
        given["top_k_values"], "integers from 2 to 500 separated by commas", lambda k: 2 <= k <= 500, int
    )
    if not 0.0 < given.confidence < 1.0:
        raise ValueError(f"--confidence: expected a number between 0 and 1, got {given.confidence}")
    if given.player is not None and given.pgn is None:
        raise ValueError("--player: expected --pgn with it, got none")
    folder = output_folder(given.output_dir)
    limit = SearchLimit(nodes=given.opponent_nodes)
    with open_engines(given) as engines:
        name, moves = _observed(given, engines)
        with engines.progress("Searching"):
            choices = [opponent_choices(engines.analyst, limit, top_k, moves) for top_k in top_ks]
        model = engines.analyst.engine_id
    fits = {
        top_k: fit_opponent(each, confidence=given.confidence)
        for top_k, each in zip(top_ks, choices, strict=True)
    }
    best_k = max(fits, key=lambda top_k: fits[top_k].log_likelihood)
    positions = len({epd for epd, _ in moves})
    print(f"{name}: {fits[best_k].moves} moves in {positions} positions, by {model} ({limit})\n")
    _print_fits(fits, best_k)
    result = {
        "opponent": name,
        "model": model,
        "limit": str(limit),
        "best_top_k": best_k,
        "fits": [_as_json(top_k, fit) for top_k, fit in fits.items()],
    }
    write_json(folder / "result.json", result)
    print(f"Written: {folder}/result.json")


def _observed(given: flags.FlagValues, engines: Engines) -> tuple[str, Moves]:
    """Whose moves are fitted, and how often each (position, move) was played."""
    most, seed = given.positions, given.seed
    of_pgn = None
    if given.pgn is not None:
        of_pgn = _sampled(pgn_moves(given.pgn, given.player, skip_plies=given.skip_plies), most, seed)
        if given.opponent_engine is None and not given.opponent_option:
            return given.player or "everyone", of_pgn
    limit = SearchLimit(nodes=given.played_nodes or given.opponent_nodes)
    opponent, samples = engines.opponent, given.opponent_samples
    name = f"{opponent.engine_id} ({limit})"
    with engines.progress("Playing"):
        if of_pgn is not None:
            epds = list(dict.fromkeys(epd for epd, _ in of_pgn))
            return name, played_in(opponent, limit, epds, samples=samples)
        played = engine_moves(
            opponent, limit, games=given.games, plies=given.plies, samples=samples, seed=seed
        )
    return name, _sampled(played, most, seed)


def _sampled(moves: Moves, most: int, seed: int) -> Moves:
    """All moves in so many of the positions at most, drawn."""
    epds = list(dict.fromkeys(epd for epd, _ in moves))
    if len(epds) <= most:
        return moves
    drawn = np.random.default_rng(seed).choice(len(epds), most, replace=False)
    kept = {epds[k] for k in drawn}
    return {key: count for key, count in moves.items() if key[0] in kept}


def _print_fits(fits: Mapping[int, OpponentFit], best_k: int) -> None:
    """Prints the fit for each number of moves, and what the best one says."""
    best = fits[best_k]
    rows = [
        (
            str(top_k),
            f"{fit.temperature_cp:.1f}",
            f"{fit.interval[0]:.1f} to {fit.interval[1]:.1f}",
            f"{100 * fit.lapse:.1f}%",
            f"{100 * fit.outside / fit.moves:.1f}%",
            f"{fit.bits:.3f}",
        )
        for top_k, fit in fits.items()
    ]
    percent = f"{100 * best.confidence:g}%"
    print_table(rows, ("k", "r", f"{percent} interval", "lapses", "outside", "bits a move"))
    uniform = -best.uniform_log_likelihood / best.moves / math.log(2.0)
    print(
        f"\nBest: --r={best.temperature_cp:.3g} --top_k={best_k} (any legal move, drawn: {uniform:.3f} "
        "bits). The interval takes the model for true."
    )
    if best.lapse > _MANY_LAPSES:
        print(
            f"In {100 * best.lapse:.0f} of 100 moves the model fails: try larger --top_k_values, other "
            "--opponent_nodes, or, for an engine, --opponent_plays=bestmove in the preparation."
        )


def _as_json(top_k: int, fit: OpponentFit) -> dict[str, object]:
    """A fit for programs; None is an interval's end that there is not."""
    ends = [end if math.isfinite(end) else None for end in fit.interval]
    return dataclasses.asdict(fit) | {"top_k": top_k, "interval": ends, "bits": fit.bits}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return run_command(__doc__, define, run, argv)
