"""A table of OpenSpiel's two-player zero-sum games solved exactly: size, seconds, value, NashConv, .efg file.

    python -m tools.solved_games --game=leduc_poker --game=liars_dice --most=3000000
    python -m tools.solved_games --registered --most=1000000 --efg --output=table.md

--registered tries every registered game as OpenSpiel loads it; those with more than --most histories, of
more than two players, or without perfect recall are listed at the end, each with its reason. --efg also
writes each as a Gambit file and reads that back; --gambit asks pygambit for the value of those with at most
so many histories. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from typing import Any

import pyspiel

from precomp_games import HistoryTree, to_efg
from precomp_games.algorithms import solve

_ZERO_SUM = (pyspiel.GameType.Utility.ZERO_SUM, pyspiel.GameType.Utility.CONSTANT_SUM)


def registered() -> list[str]:
    """All registered games for two players of zero or constant sum that load by their name alone."""
    names = []
    for kind in pyspiel.registered_games():
        if (
            kind.default_loadable
            and kind.utility in _ZERO_SUM
            and kind.min_num_players <= 2 <= kind.max_num_players
        ):
            names.append(kind.short_name)
    return names


def row(name: str, most: int, efg: bool, gambit: int) -> dict[str, Any]:
    """A game's row of the table.

    Raises:
      ValueError: the game is not of that kind, or too large.
    """
    game = pyspiel.load_game_as_turn_based(name)
    began = time.process_time()
    tree = HistoryTree.of_game(game, max_histories=most)
    expanded = time.process_time() - began
    began = time.process_time()
    found = solve(tree)
    solved = time.process_time() - began
    told = {
        "game": name,
        "histories": tree.num_histories,
        "information states": tree.num_infosets,
        "expanded, s": f"{expanded:.2f}",
        "solved, s": f"{solved:.2f}",
        "method": found.method,
        "value": f"{found.value:.10g}",
        "NashConv": f"{found.nash_conv:.1e}",
    }
    if efg:
        text = to_efg(tree)
        again = HistoryTree.of_game(pyspiel.load_efg_game(text))
        assert (again.num_histories, again.num_infosets) == (tree.num_histories, tree.num_infosets), name
        assert abs(solve(again).value - found.value) <= 1e-9 * max(tree.utility_range, 1.0), name
        told["efg, MB"] = f"{len(text) / 1e6:.2f}"
        told["Gambit"] = _gambit(text) if tree.num_histories <= gambit else ""
    return told


def _gambit(text: str) -> str:
    """The value to player 0 by pygambit's linear program over the sequence form."""
    import io

    import pygambit  # type: ignore[import-not-found,import-untyped,unused-ignore]

    game = pygambit.read_efg(io.StringIO(text))
    profile = pygambit.nash.lp_solve(game, rational=False).equilibria[0]
    return f"{float(profile.payoff(next(iter(game.players)))):.10g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--game", action="append", default=[], help="A game, as OpenSpiel loads it; may be repeated."
    )
    parser.add_argument("--registered", action="store_true", help="All registered games too.")
    parser.add_argument("--most", type=int, default=1_000_000, help="Leave out games of more histories.")
    parser.add_argument("--efg", action="store_true", help="Write .efg files and read them back.")
    parser.add_argument("--gambit", type=int, default=0, help="Ask pygambit about games of at most so many.")
    parser.add_argument("--output", default=None, help="Also write the table there, as Markdown.")
    given = parser.parse_args()
    names = [*given.game, *(registered() if given.registered else [])]
    rows: list[dict[str, Any]] = []
    left_out: dict[str, list[str]] = {}
    for name in names:
        try:
            rows.append(row(name, given.most, given.efg, given.gambit))
            print(rows[-1], flush=True)
        except (ValueError, pyspiel.SpielError, RuntimeError) as error:
            reason = str(error).splitlines()[0][:160]
            reason = "too large" if "max_histories" in reason or "memory" in reason else reason
            left_out.setdefault(reason, []).append(name)
            print(f"{name}: {reason}", flush=True)
    rows.sort(key=lambda each: int(each["histories"]))
    lines = []
    if rows:
        lines = [" | ".join(["", *rows[0], ""]).strip(), "|" + "---|" * len(rows[0])]
        lines += [" | ".join(["", *map(str, each.values()), ""]).strip() for each in rows]
    lines += [f"\nLeft out ({reason}): {', '.join(names)}" for reason, names in left_out.items()]
    print("\n".join(lines))
    if given.output:
        pathlib.Path(given.output).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
