r"""How random is this opponent? The r and the number of moves that fit what it plays best, with an interval.

The opponent of examples/chess_preparation.py plays the k best moves of an engine's search with probabilities
proportional to exp(cp / r). This says which r and k, and how often none of it holds. Of a person, by games:

  python examples/estimate_opponent.py --pgn=games.pgn --player="Karpov Anatoli" --skip_plies=20

and of an engine, by what it answers in games with itself, or in the positions of --pgn:

  python examples/estimate_opponent.py --opponent_option="Skill Level=5"

--engine is the model's engine, --opponent_nodes what it searches. Writes result.json.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import chess_runs
import common
import numpy as np
from absl import flags

from precomp_games.chess import (
    OpponentFit,
    SearchLimit,
    StoredEngine,
    engine_moves,
    fit_opponent,
    opponent_choices,
    pgn_moves,
    played_in,
)

_MANY_LAPSES = 0.2

FLAGS = flags.FLAGS
_PGN = flags.DEFINE_string("pgn", None, "Games: whose moves are fitted, or where an engine is asked.")
_PLAYER = flags.DEFINE_string(
    "player", None, "Whose moves in --pgn, as its White and Black tags have the name. Default: everyone's."
)
_SKIP_PLIES = flags.DEFINE_integer(
    "skip_plies", 16, "Half-moves at the start of each game in --pgn that are left out.", lower_bound=0
)
_GAMES = flags.DEFINE_integer("games", 20, "An engine's games with itself.", lower_bound=1)
_PLIES = flags.DEFINE_integer("plies", 40, "Half-moves of each of them.", lower_bound=1)
_POSITIONS = flags.DEFINE_integer(
    "positions", 1000, "At most so many positions are looked at, drawn with --seed.", lower_bound=1
)
_PLAYED_NODES = flags.DEFINE_integer(
    "played_nodes",
    None,
    "Nodes a move of an engine that is fitted. Default: --opponent_nodes.",
    lower_bound=1,
)
_TOP_K_VALUES = flags.DEFINE_list("top_k_values", ["2", "3", "5"], "Numbers of moves to try.")
_CONFIDENCE = flags.DEFINE_float("confidence", 0.95, "How often the interval shall have the true r in it.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/estimate_opponent", "Where files go.")
common.define_chess_flags()
flags.adopt_module_key_flags(common)


def observed(engines: chess_runs.Engines) -> tuple[str, dict[tuple[str, str], int]]:
    """Whose moves are fitted, and how often each (position, move) was played."""
    of_pgn = None
    if _PGN.value is not None:
        of_pgn = pgn_moves(_PGN.value, _PLAYER.value, skip_plies=_SKIP_PLIES.value)
        if FLAGS.opponent_engine is None and not FLAGS.opponent_option:
            return _PLAYER.value or "everyone", sampled(of_pgn)
    limit = SearchLimit(nodes=_PLAYED_NODES.value or FLAGS.opponent_nodes)
    opponent, samples = engines.opponent, FLAGS.opponent_samples
    name = f"{opponent.engine_id} ({limit})"
    with engines.progress("Playing"):
        if of_pgn is not None:
            epds = list(dict.fromkeys(epd for epd, _ in sampled(of_pgn)))
            return name, played_in(opponent, limit, epds, samples=samples)
        played = engine_moves(
            opponent, limit, games=_GAMES.value, plies=_PLIES.value, samples=samples, seed=FLAGS.seed
        )
    return name, sampled(played)


def sampled(moves: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """All moves in --positions of the positions."""
    epds = list(dict.fromkeys(epd for epd, _ in moves))
    if len(epds) <= _POSITIONS.value:
        return moves
    drawn = np.random.default_rng(FLAGS.seed).choice(len(epds), _POSITIONS.value, replace=False)
    kept = {epds[k] for k in drawn}
    return {key: count for key, count in moves.items() if key[0] in kept}


def fits_of(
    engine: StoredEngine, engines: chess_runs.Engines, moves: dict[tuple[str, str], int], top_ks: list[int]
) -> list[OpponentFit]:
    """The best fit for each number of moves."""
    limit = SearchLimit(nodes=FLAGS.opponent_nodes)
    with engines.progress("Searching"):
        choices = [opponent_choices(engine, limit, top_k, moves) for top_k in top_ks]
    return [fit_opponent(each, confidence=_CONFIDENCE.value) for each in choices]


def main(argv: Sequence[str]) -> None:
    del argv
    top_ks = common.numbers(
        _TOP_K_VALUES, "integers from 2 to 500 separated by commas", lambda k: 2 <= k <= 500, int
    )
    if not 0.0 < _CONFIDENCE.value < 1.0:
        raise ValueError(f"--confidence: expected a number between 0 and 1, got {_CONFIDENCE.value}")
    if _PLAYER.value is not None and _PGN.value is None:
        raise ValueError("--player: expected --pgn with it, got none")
    folder = common.output_folder(_OUTPUT_DIR.value)
    with chess_runs.engines() as engines:
        name, moves = observed(engines)
        fits = fits_of(engines.analyst, engines, moves, top_ks)
        model = engines.analyst.engine_id
    best = max(fits, key=lambda fit: fit.log_likelihood)
    print(
        f"{name}: {best.moves} moves in {len({epd for epd, _ in moves})} positions, by {model} "
        f"(nodes={FLAGS.opponent_nodes})\n"
    )
    rows = [
        (
            str(top_k),
            f"{fit.temperature_cp:.1f}",
            f"{fit.interval[0]:.1f} to {fit.interval[1]:.1f}",
            f"{100 * fit.lapse:.1f}%",
            f"{100 * fit.outside / fit.moves:.1f}%",
            f"{fit.bits:.3f}",
        )
        for top_k, fit in zip(top_ks, fits, strict=True)
    ]
    percent = f"{100 * best.confidence:g}%"
    common.print_table(rows, ("k", "r", f"{percent} interval", "lapses", "outside", "bits a move"))
    top_k = top_ks[fits.index(best)]
    uniform = -best.uniform_log_likelihood / best.moves / math.log(2.0)
    print(
        f"\nBest: --r={best.temperature_cp:.3g} --top_k={top_k} (any legal move, drawn: {uniform:.3f} bits). "
        "The interval takes the model for true."
    )
    if best.lapse > _MANY_LAPSES:
        print(
            f"In {100 * best.lapse:.0f} of 100 moves the model fails: try larger --top_k_values, other "
            "--opponent_nodes, or, for an engine, --opponent_plays=bestmove in the preparation."
        )
    common.write_json(
        folder / "result.json",
        {
            "opponent": name,
            "model": model,
            "limit": f"nodes={FLAGS.opponent_nodes}",
            "best_top_k": top_k,
            "fits": [as_json(k, fit) for k, fit in zip(top_ks, fits, strict=True)],
        },
    )
    print(f"Written: {folder}/result.json")


def as_json(top_k: int, fit: OpponentFit) -> dict[str, object]:
    """A fit for programs; None is an interval's end that there is not."""
    ends = [end if math.isfinite(end) else None for end in fit.interval]
    return dataclasses.asdict(fit) | {"top_k": top_k, "interval": ends, "bits": fit.bits}


if __name__ == "__main__":
    common.run(main)
