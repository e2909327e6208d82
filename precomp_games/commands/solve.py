r"""Computes an equilibrium of any two-player zero-sum game of OpenSpiel's, and how exact it is.

  precomp-games solve --game=leduc_poker --output_dir=output/leduc
  precomp-games solve --game="goofspiel(num_cards=4,imp_info=True)" --refine
  precomp-games solve --game="liars_dice(dice_sides=4)" --method=pcfr+ --target_nash_conv=1e-3

Nobody prepares here: this is the game by itself. The exact method is one sparse linear program, or backward
induction if information is perfect; the others are counterfactual regret minimization. Games with
simultaneous moves are solved as turns that hide the other player's action. An equilibrium may do anything
off its path; with --refine it is an equilibrium of every proper subgame, on the path or not.

Prints the value to player 0, NashConv, measured by best responses, and the strategies at --infosets
information states. Writes policy.npz (`precomp_games.algorithms.load_policy` makes an OpenSpiel policy of
it), result.json and, for regret minimization, nash_conv.png; with --efg also the game for Gambit.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Annotated, Any

import numpy as np
from absl import flags

from precomp_games._support import checks
from precomp_games._support.files import write_together
from precomp_games.algorithms.zero_sum.solve import METHODS, Equilibrium, solve
from precomp_games.algorithms.zero_sum.tables import save_policy
from precomp_games.commands import _app, _files, _flags
from precomp_games.meta_game.gambit import to_efg
from precomp_games.tree.history_tree import HistoryTree


@dataclasses.dataclass
class Flags:
    """Flags of the game and of the way to solve it.

    Attributes:
      game: The game, as OpenSpiel loads it.
      method: How to solve it.
      refine: Find an equilibrium of every proper subgame as well, by the exact method.
      iterations: Iterations of regret minimization, at most.
      target_nash_conv: Stop at this NashConv.
      seconds: Stop regret minimization after so many seconds.
      infosets: Number of information states to print, those that matter most.
      efg: Also write the game as game.efg, for Gambit.
      output_dir: Where files go. Default: no files.
    """

    game: str = "kuhn_poker"
    method: Annotated[str, checks.one_of(tuple(METHODS))] = "exact"
    refine: bool = False
    iterations: checks.PositiveInt | None = None
    target_nash_conv: Annotated[float, checks.Ge(0.0)] | None = None
    seconds: Annotated[float, checks.Ge(0.001)] | None = None
    infosets: checks.NonNegativeInt = 10
    efg: bool = False
    output_dir: str | None = None


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_flags(own, Flags, _flags.MemoryFlags)


def run(given: flags.FlagValues) -> None:
    """Solve the game, print and write what came out."""
    if given.efg and given.output_dir is None:
        raise ValueError("--efg: expected --output_dir, where the file goes, got none")
    if given.refine and given.method != "exact":
        raise ValueError(f"--refine: expected --method=exact, got {given.method}")
    game = _flags.named_game(given.game)
    folder = None if given.output_dir is None else _app.output_folder(given.output_dir)
    names = ("method", "refine", "iterations", "target_nash_conv", "seconds")
    how: dict[str, Any] = {name: given[name].value for name in names}
    result = solve(game, **how)
    _print(result, given.infosets)
    if folder is not None:
        _write(result, folder, given.efg)


def _print(result: Equilibrium, count: int) -> None:
    tree = result.tree
    counted = f", {result.iterations} iterations" if result.iterations else ""
    print(
        f"{tree.game_string}: {tree.num_histories} histories, {tree.num_infosets} information states\n"
        f"Value to player 0: {round(result.value, 12) + 0.0:.10g}\n"
        f"NashConv: {max(result.nash_conv, 0.0):.2g} ({result.method}{counted}, {result.seconds:.2f} s)"
    )
    if result.refinement is not None:
        subgames, gap = result.refinement.subgames, max(result.refinement.gap, 0.0)
        print(f"Proper subgames, with the whole: {subgames}; NashConv of the worst: {gap:.2g}")
    if not result.converged:
        print("That is more than was asked for; more --iterations or --seconds may help.")
    if count:
        print()
        _files.print_table(_rows(tree, result, count), ("player", "reach", "plays", "at"))


def _rows(tree: HistoryTree, result: Equilibrium, count: int) -> list[tuple[Any, ...]]:
    """Return the information states that are reached most often, and what is played there."""
    first, second = result.strategies
    reach = np.zeros(tree.num_infosets)
    decides = tree.infoset >= 0
    often = first.reach() * second.reach() * tree.chance_reach
    np.add.at(reach, tree.infoset[decides], often[decides])
    played, actions = first.memorize + second.memorize, tree.entry_action
    rows = []
    for k in np.argsort(-reach, kind="stable")[:count].tolist():
        state = tree.state(int(tree.infoset_history[k]))
        moves = [
            f"{state.action_to_string(state.current_player(), int(actions[e]))} {played[e]:.3f}"
            for e in range(tree.first_entry[k], tree.first_entry[k + 1])
            if played[e] >= 5e-4
        ]
        name = _files.ends_of(" ".join(tree.key(k).split()))
        rows.append((int(tree.infoset_player[k]), float(reach[k]), ", ".join(moves), name or "(start)"))
    return rows


def _write(result: Equilibrium, folder: pathlib.Path, efg: bool) -> None:
    """Write the files together: all of them or none."""
    tree = result.tree
    names = ("value", "nash_conv", "method", "iterations", "converged", "seconds", "trace")
    report: dict[str, Any] = {"game": tree.game_string}
    report |= {"histories": tree.num_histories, "infosets": tree.num_infosets}
    report |= {name: getattr(result, name) for name in names}
    if result.refinement is not None:
        report |= {"subgames": result.refinement.subgames, "gap": result.refinement.gap}
    files = ["policy.npz", "result.json"]
    with write_together(folder) as drafts:
        save_policy(result.policy(), drafts / "policy.npz")
        _files.write_json(drafts / "result.json", report)
        if efg:
            (drafts / "game.efg").write_text(to_efg(tree), encoding="utf-8")
            files.append("game.efg")
        if len(result.trace) > 1:
            _plot(result, drafts / "nash_conv.png")
            files.append("nash_conv.png")
    print(f"\nWritten: {folder}/{', '.join(files)}")


def _plot(result: Equilibrium, path: pathlib.Path) -> None:
    with _files.figure(path, figsize=(6.4, 4.0), layout="constrained") as (drawing, panel):
        result.plot(panel)
        drawing.suptitle(f"{result.tree.game_string}, {result.method}")
