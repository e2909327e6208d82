r"""A match between two players with a budget, in any two-player game of perfect information.

  python examples/search_match.py --game=connect_four --first="pvs(depth=4)" \
      --second="mcts(simulations=1000)" --games=20 --output_dir=output/search_match

Each opening (some random moves, from the seed) is played twice, with sides changed. Prints a table of
results, with the time that each took for a move, and writes games.csv.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

import common
import numpy as np
import pyspiel
from absl import flags
from open_spiel.python import policy as openspiel_policy

from precomp_games.algorithms.search import SearchBot

FLAGS = flags.FLAGS
_GAME = flags.DEFINE_string("game", "connect_four", "OpenSpiel game string; perfect information.")
_FIRST = flags.DEFINE_string("first", "pvs(depth=4)", f"One player. Policies: {common.known_policies()}.")
_SECOND = flags.DEFINE_string("second", "mcts(simulations=500)", "The other player; policies as for --first.")
_GAMES = flags.DEFINE_integer("games", 10, "Games; if odd, the last opening is played once.", 1)
_OPENING = flags.DEFINE_integer("opening_moves", 2, "Random moves at the start of a game.", lower_bound=0)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of openings, chance and mixed policies.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Where games.csv goes. Default: nowhere.")


@dataclasses.dataclass
class Player:
    """A player of the match and what its moves took."""

    spec: str
    policy: openspiel_policy.Policy
    bot: SearchBot
    moves: int = 0
    seconds: float = 0.0

    def step(self, state: Any) -> int:
        start = time.perf_counter()
        action = self.bot.step(state)
        self.seconds += time.perf_counter() - start
        self.moves += 1
        return action


def draw(state: Any, rng: np.random.Generator) -> None:
    """Play a chance move."""
    outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
    state.apply_action(int(rng.choice(outcomes, p=probabilities)))


def opening(game: pyspiel.Game, rng: np.random.Generator) -> list[int]:
    """Return the state after random moves that do not end the game; chance is drawn by its probabilities."""
    while True:
        state, moves = game.new_initial_state(), 0
        while not state.is_terminal() and (moves < _OPENING.value or state.is_chance_node()):
            if state.is_chance_node():
                draw(state, rng)
            else:
                state.apply_action(int(rng.choice(state.legal_actions())))
                moves += 1
        if not state.is_terminal():
            return list(state.history())


def play(game: pyspiel.Game, moves: Sequence[int], seats: Sequence[Player], rng: np.random.Generator) -> Any:
    """Play a game to its end and return the last state."""
    state = game.new_initial_state()
    for action in moves:
        state.apply_action(action)
    while not state.is_terminal():
        if state.is_chance_node():
            draw(state, rng)
        else:
            state.apply_action(seats[state.current_player()].step(state))
    return state


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.output_folder(_OUTPUT_DIR.value) if _OUTPUT_DIR.value else None
    game = common.named_game(_GAME.value)
    common.check_game(game)
    if _OPENING.value >= game.max_game_length():
        raise ValueError(
            f"--opening_moves: expected fewer than the game's {game.max_game_length()}, got {_OPENING.value}"
        )
    seeds = np.random.SeedSequence(_SEED.value).spawn(3)
    players = []
    for spec, seed in zip((_FIRST.value, _SECOND.value), seeds[:2], strict=True):
        policy = common.policy(game, spec)
        players.append(Player(spec, policy, SearchBot(policy, int(seed.generate_state(1)[0]))))
    rng = np.random.default_rng(seeds[2])
    rows: list[dict[str, Any]] = []
    moves: list[int] = []
    with common.bar("games", "games", _GAMES.value) as show:
        for k in range(_GAMES.value):
            if k % 2 == 0:
                moves = opening(game, rng)
            seat = k % 2  # of the first player
            seats = players if seat == 0 else players[::-1]
            end = play(game, moves, seats, rng)
            row = {"game": k + 1, "player_0": seats[0].spec, "player_1": seats[1].spec}
            row |= {"utility_of_first": end.returns()[seat], "seat_of_first": seat}
            row |= {"opening_moves": len(moves), "moves": " ".join(map(str, end.history()))}
            rows.append(row)
            show(k + 1, f"mean {statistics.fmean(row['utility_of_first'] for row in rows):+.3f}")
    report(game, players, rows)
    if folder:
        common.write_csv(folder / "games.csv", rows)
        print(f"\nWritten: {folder}/games.csv")


def report(game: pyspiel.Game, players: Sequence[Player], rows: Sequence[dict[str, Any]]) -> None:
    """Print results of the first player, by seat and together, and the time for a move."""
    half = (game.utility_sum() or 0.0) / 2.0
    table = []
    for name, seats in (("moving first", (0,)), ("moving second", (1,)), ("together", (0, 1))):
        own = [row["utility_of_first"] for row in rows if row["seat_of_first"] in seats]
        if own:
            won, drawn = sum(u > half for u in own), sum(u == half for u in own)
            error = statistics.stdev(own) / math.sqrt(len(own)) if len(own) > 1 else math.nan
            table.append((len(own), won, drawn, len(own) - won - drawn, statistics.fmean(own), error, name))
    print(f"{_GAME.value}: {players[0].spec} against {players[1].spec}; results of the first")
    common.print_table(table, ("games", "won", "drawn", "lost", "mean utility", "standard error", ""))
    print()
    common.print_table(
        [(p.moves, 1e3 * p.seconds / max(1, p.moves), p.spec) for p in players],
        ("moves", "ms a move", "player"),
    )


if __name__ == "__main__":
    common.run(main)
