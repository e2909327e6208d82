r"""Who is this opponent? The search, the r and the number of moves that fit what it plays best.

The opponent of `precomp-games prepare` plays the k best moves of an engine's search with probabilities
proportional to exp(cp / r). This says how many nodes it searches, which r and k, how far all of that may be
off, and how often none of it holds. Of a person, by games:

  precomp-games estimate --pgn=games.pgn --player="Karpov Anatoli" --skip_plies=20

and of an engine, by what it answers in games with itself, or in the positions of --pgn:

  precomp-games estimate --opponent_option="Skill Level=5"

--engine is the model's engine, --opponent_nodes between which limits it may search; one number is taken for
known. One search of each position, to the largest limit, serves for all of them, but for a few where an
iteration ends right behind a limit. Writes result.json.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from absl import flags

from precomp_games._support import bars
from precomp_games._support.deadlines import part, sample_in_time
from precomp_games._support.messages import counted
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.opponents.estimation import (
    Choice,
    NodesFit,
    choices_by_nodes,
    fit_nodes,
    opponent_choices,
)
from precomp_games.chess.opponents.played import Moves, engine_moves, pgn_moves, played_in
from precomp_games.chess.preparation.model import Engines
from precomp_games.chess.records.pgn_files import GameReport
from precomp_games.commands._app import run_command
from precomp_games.commands._engines import open_engines
from precomp_games.commands._files import output_folder, print_table, write_json
from precomp_games.commands._flags import (
    Define,
    define_chess_flags,
    define_minutes_flag,
    ends_of,
    numbers,
    settings_of,
)

_NODES = "200-5000"
_PLAYED_NODES = 1000
_PLAYING = 0.3  # of --minutes, where an engine's moves are to be seen first
_FIRST = 16  # positions that are looked at in any case
_SEARCHING = 0.5  # of the others; the rest is for fits


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
        "Nodes a move of an engine that is fitted. Default: --opponent_nodes; of a range "
        f"{_PLAYED_NODES}, or the end next to it.",
        lower_bound=1,
    )
    define.list("top_k_values", ["2", "3", "5"], "Numbers of moves to try.")
    define.float("confidence", 0.95, "How often the region shall have the true nodes and r in it.")
    define.string("output_dir", "output/estimate_opponent", "Where files go.")
    define_minutes_flag(own)
    define_chess_flags(own, ranges=True)
    own.set_default("opponent_nodes", _NODES)
    own.set_default("opponent_plays", "bestmove")  # whose answers are read


def run(given: flags.FlagValues) -> None:
    """Fits nodes and r to the moves of a player, for each number of moves."""
    top_ks = numbers(
        given["top_k_values"], "integers from 2 to 500 separated by commas", lambda k: 2 <= k <= 500, int
    )
    if not 0.0 < given.confidence < 1.0:
        raise ValueError(f"--confidence: expected a number between 0 and 1, got {given.confidence}")
    if given.player is not None and given.pgn is None:
        raise ValueError("--player: expected --pgn with it, got none")
    folder = output_folder(given.output_dir)
    low, high = nodes = ends_of(given.opponent_nodes)
    settings = dataclasses.replace(settings_of(given, 0, 10.0), opponent_limit=SearchLimit(nodes=high))
    with open_engines(given, settings) as engines:
        with part(_PLAYING):
            name, every = _observed(given, engines)
        epds = list(dict.fromkeys(epd for epd, _ in every))

        def looked(drawn: list[str]) -> tuple[Moves, list[Callable[[int], Sequence[Choice]]]]:
            moves = every if len(drawn) == len(epds) else _moves_at(every, drawn)
            return moves, [_choices(engines, top_k, nodes, moves) for top_k in top_ks]

        with engines.progress("Searching"):
            looked_at, (moves, choices) = sample_in_time(
                epds, looked, seed=given.seed, share=_SEARCHING, first=_FIRST
            )
        fits: dict[int, NodesFit] = {}
        with bars.progress("Fitting", "numbers of moves", total=len(top_ks)) as show:
            for k, (top_k, each) in enumerate(zip(top_ks, choices, strict=True)):
                with part(1.0 / (len(top_ks) - k)):
                    fits[top_k] = fit_nodes(each, low, high, confidence=given.confidence)
                show(k + 1)
        model = engines.analyst.engine_id
    if looked_at < len(epds):
        print(f"{looked_at} of {counted(len(epds), 'position')}, drawn with --seed, as --minutes allow.")
    best_k = max(fits, key=lambda top_k: fits[top_k].fit.log_likelihood)
    positions, searched = len({epd for epd, _ in moves}), f"{low} to {high}" if low < high else str(low)
    found = fits[best_k].fit.moves
    print(f"{name}: {found} moves in {positions} positions, by {model} ({searched} nodes)\n")
    _print_fits(fits, best_k, nodes)
    result = {
        "opponent": name,
        "model": model,
        "nodes": list(nodes),
        "positions": looked_at,
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
        report = GameReport()
        moves = pgn_moves(given.pgn, given.player, skip_plies=given.skip_plies, report=report)
        print(f"{'Games':<20}{report}")
        of_pgn = _sampled(moves, most, seed)
        if given.opponent_engine is None and not given.opponent_option:
            return given.player or "everyone", of_pgn
    low, high = ends_of(given.opponent_nodes)
    limit = SearchLimit(nodes=given.played_nodes or min(max(_PLAYED_NODES, low), high))
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
    return _moves_at(moves, [epds[k] for k in drawn])


def _moves_at(moves: Moves, epds: Sequence[str]) -> Moves:
    """The moves in some positions."""
    kept = set(epds)
    return {key: count for key, count in moves.items() if key[0] in kept}


def _choices(
    engines: Engines, top_k: int, nodes: tuple[int, int], moves: Moves
) -> Callable[[int], Sequence[Choice]]:
    """What searches say at each limit; where there is one only, no search has to say what others would."""
    if nodes[0] < nodes[1]:
        return choices_by_nodes(engines.analyst, nodes[1], top_k, moves)
    known = opponent_choices(engines.analyst, SearchLimit(nodes=nodes[0]), top_k, moves)
    return lambda limit: known


def _print_fits(fits: Mapping[int, NodesFit], best_k: int, nodes: tuple[int, int]) -> None:
    """Prints the fit for each number of moves, and what the best one says."""
    best, rows = fits[best_k], []
    for top_k, found in fits.items():
        fit = found.fit
        ends = [row[0] for row in found.region]
        rows.append(
            (
                str(top_k),
                str(found.nodes),
                f"{ends[0]} to {ends[-1]}",
                f"{fit.temperature_cp:.1f}",
                f"{min(row[1] for row in found.region):.1f} to {max(row[2] for row in found.region):.1f}",
                f"{100 * fit.lapse:.1f}%",
                f"{100 * fit.outside / fit.moves:.1f}%",
                f"{fit.bits:.3f}",
            )
        )
    percent = f"{100 * best.confidence:g}%"
    print_table(rows, ("k", "nodes", percent, "r", f"{percent} of r", "lapses", "outside", "bits a move"))
    uniform = -best.fit.uniform_log_likelihood / best.fit.moves / math.log(2.0)
    print(
        f"\nBest: --opponent_nodes={best.nodes} --r={best.fit.temperature_cp:.3g} --top_k={best_k} (any "
        f"legal move, drawn: {uniform:.3f} bits). The {percent} are of nodes and r together, and take the "
        "model for true."
    )
    if not best.explained:
        between = f"{nodes[0]} to {nodes[1]}" if nodes[0] < nodes[1] else str(nodes[0])
        print(
            f"No engine of the model's kind with {between} nodes explains these moves: "
            f"{100 * best.fit.lapse:.0f} of 100 are lapses, and such an engine has none. Try other "
            "--opponent_nodes or --top_k_values, or, for an engine, --opponent_plays=bestmove or game in the "
            "preparation; of a person, games say more."
        )


def _as_json(top_k: int, found: NodesFit) -> dict[str, object]:
    """A fit for programs; None is an interval's end that there is not."""

    def ends(low: float, high: float) -> list[float | None]:
        return [end if math.isfinite(end) else None for end in (low, high)]

    fit = dataclasses.asdict(found.fit) | {"top_k": top_k, "bits": found.fit.bits}
    region = [[n, *ends(low, high)] for n, low, high in found.region]
    fit |= {"interval": ends(*found.fit.interval), "nodes": found.nodes, "region": region}
    return fit | {"explained": found.explained}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return run_command(__doc__, define, run, argv, stops=True)
