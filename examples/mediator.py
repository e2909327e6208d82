r"""A mediator leads a game of Battleship, Sheriff or Goofspiel, and refines its plan where play has gone.

  python examples/mediator.py
  python examples/mediator.py --game=sheriff --resolve=regret --deviate=0.3 --seed=4
  python examples/mediator.py --game=sheriff --blueprint=equilibrium --objective=smaller --resolve=none
  python examples/mediator.py --game=goofspiel --plays=3

In Goofspiel prizes come in random order, which both players see; of the bids they see who won. Prizes are
what players get, and after equal bids nobody does.

The mediator starts from a blueprint that it never writes down, or from the best correlated equilibrium by
--objective and --notion, where the game is small enough to be solved whole. Before each move it recommends an
action, to the player who is to move alone. After each round of public moves it refines the plan for the
subgame that play has entered, so that no trigger of the game becomes more exploitable than it was, and goes
on from the refined plan. Players follow, but for --deviate; one who does not gets no further recommendations.

Prints the moves with what was recommended, what both players together can expect in a subgame before and
after its refinement, and what they got. Expectations are for players who follow, given that play has come to
the subgame, and so in the units of their payoffs; the worst violation of the refinement's constraints is
printed in the same units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import common
import numpy as np
import pyspiel
from absl import flags

from precomp_games.algorithms import efce

FLAGS = flags.FLAGS
_GAMES = {
    "battleship": (
        "battleship(board_height=2,board_width=2,ship_sizes=[1],ship_values=[1.0],num_shots=3,"
        "allow_repeated_shots=false,loss_multiplier=2.0)"
    ),
    "sheriff": "sheriff(max_items=2,max_bribe=2,num_rounds=3)",
    "goofspiel": (
        "turn_based_simultaneous_game(game=goofspiel(num_cards=3,points_order=random,imp_info=True,"
        "returns_type=total_points))"
    ),
}
_GAME = flags.DEFINE_string(
    "game", "battleship", "battleship, sheriff, goofspiel, or an OpenSpiel game string of one of them."
)
_BLUEPRINT = flags.DEFINE_enum(
    "blueprint", "jittered", ["uniform", "jittered", "equilibrium"], "What to start from."
)
_OBJECTIVE = flags.DEFINE_string("objective", "welfare", f"Of --blueprint=equilibrium: {common.OBJECTIVES}.")
_NOTION: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "notion",
    "efce",
    ["efce", "efcce", "nfcce"],
    "Of --blueprint=equilibrium: whether players decide to follow when they are told their move, before they "
    "are told, or before the game.",
)
_WIDTH = flags.DEFINE_float("width", 0.5, "Of the jitter.", 0.0, 1.0)
_RESOLVE = flags.DEFINE_enum("resolve", "lp", ["lp", "regret", "none"], "How subgames are refined.")
_ITERATIONS = flags.DEFINE_integer("iterations", 2000, "Of regret minimization.", lower_bound=1)
_BOUNDS: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "bounds", "aggregate", ["paper", "separate", "aggregate"], "How slack is shared among subgames."
)
_DEVIATE = flags.DEFINE_float("deviate", 0.0, "Probability that a player does as it likes.", 0.0, 1.0)
_PLAYS = flags.DEFINE_integer("plays", 1, "Games to play.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Of the draws, and of the jitter.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Where plays.json goes, if anywhere.")


class Resolver:
    """Refines the subgame that a state is in, once for each number of rounds; what was refined is kept."""

    def __init__(self, game: pyspiel.Game, blueprint: Any) -> None:
        self.game = game
        self.first = efce.Resolving.of(game, blueprint, efce.public_moves(game, 1), _BOUNDS.value)
        self.known: dict[Any, tuple[efce.Resolving, Any]] = {}
        self.last: Any = None
        self.rounds = 0
        self.log: list[dict[str, Any]] = []

    def start(self) -> None:
        """Before a play."""
        self.last, self.rounds, self.log = None, 0, []

    def __call__(self, state: Any) -> tuple[efce.SequenceGame, efce.CorrelationPlan] | None:
        public = efce.public_moves(self.game, self.rounds + 1)
        name: Any = public(state)
        if name is None:
            return None
        if name not in self.known:
            level = self.first
            if self.last is not None:
                above, refined = self.known[self.last]
                level = above.deeper(refined, public)
            self.known[name] = (level, self.refined(level, name))
        refined = self.known[name][1]
        self.last, self.rounds = name, self.rounds + 1
        # Welfare and violations are weighted with the probability of play's coming here; what the players get
        # is not.
        probability = refined.problem.mass
        weight = probability or 1.0
        entry = {
            "rounds": self.rounds,
            "subgame": list(name),
            "pairs": int((refined.plan.pairs.pair_label >= 0).sum()),
            "probability": probability,
            "blueprint_welfare": refined.blueprint_welfare / weight,
            "welfare": refined.welfare / weight,
            "violation": refined.problem.violation(refined.plan) / weight,
            "seconds": refined.seconds,
        }
        self.log.append(entry)
        print(
            f"  after round {self.rounds}: refined {entry['pairs']} pairs, {refined.seconds:.2f} s, "
            f"expected welfare from here {entry['blueprint_welfare']:.5f} -> {entry['welfare']:.5f}, "
            f"violation {entry['violation']:.1g}"
        )
        return refined.plan.game, refined.plan

    def refined(self, level: efce.Resolving, name: Any) -> Any:
        problem = level.problem(name)
        if _RESOLVE.value == "lp":
            return efce.refine_lp(problem)
        # A random start, and no less welfare than the blueprint's; more is by chance.
        target = problem.blueprint.welfare(0)
        return efce.refine_regret(
            problem, iterations=_ITERATIONS.value, target=target, start="random", seed=_SEED.value
        )


def play(
    game: pyspiel.Game, mediator: efce.Mediator, rng: np.random.Generator
) -> tuple[list[dict[str, Any]], list[float]]:
    """Return the moves, and what the players got."""
    state, moves = game.new_initial_state(), []
    while not state.is_terminal():
        player, advice = state.current_player(), None
        if state.is_chance_node():
            actions, odds = zip(*state.chance_outcomes(), strict=True)
            action = int(rng.choice(actions, p=odds))
            words = "chance draws"
        else:
            advice = mediator.recommend(state)
            if advice is None or rng.random() < _DEVIATE.value:
                action = int(rng.choice(state.legal_actions()))
            else:
                action = advice
            mediator.played(state, action)
            follows = "is told, and plays"
            if advice is None:
                follows = "is told no more, and plays"
            elif advice != action:
                follows = f"is told {state.action_to_string(player, advice)!r} but plays"
            words = f"player {player} {follows}"
        print(f"  {words} {state.action_to_string(player, action)!r}")
        moves.append({"player": player, "recommended": advice, "action": action})
        state.apply_action(action)
    got = state.returns()
    print(f"  utilities: {got[0]:g}, {got[1]:g}; welfare, their sum: {sum(got):g}")
    return moves, got


def start(game: pyspiel.Game) -> Any:
    """Return the blueprint."""
    if _BLUEPRINT.value == "uniform":
        return efce.uniform_blueprint()
    if _BLUEPRINT.value == "jittered":
        return efce.jittered_blueprint(_SEED.value, _WIDTH.value)
    if _NOTION.value != "efce" and _RESOLVE.value != "none":
        raise ValueError(
            f"--notion: expected efce, or --resolve=none, since refining is for players who are told their "
            f"moves, got {_NOTION.value}"
        )
    best = efce.efce_lp(game, objective=common.objective(_OBJECTIVE.value), notion=_NOTION.value)
    print(
        f"Equilibrium ({_NOTION.value}, {_OBJECTIVE.value}): utilities {best.utilities[0]:.5f} and "
        f"{best.utilities[1]:.5f}, deviating gains at most {max(best.exploitability, 0.0):.1g}"
    )
    return best.plan


def main(argv: Sequence[str]) -> None:
    del argv
    game = common.named_game(_GAMES.get(_GAME.value, _GAME.value))
    folder = common.output_folder(_OUTPUT_DIR.value) if _OUTPUT_DIR.value else None
    blueprint = start(game)
    resolver = Resolver(game, blueprint) if _RESOLVE.value != "none" else None
    trunk = efce.SequenceGame.of(game, public=efce.public_moves(game, 1), trunk=resolver is not None)
    rng = np.random.default_rng([_SEED.value, 1])  # the mediator's draws are others
    plays: list[dict[str, Any]] = []
    for number in range(_PLAYS.value):
        print(f"Game {number + 1}")
        if resolver is not None:
            resolver.start()
        mediator = efce.Mediator(trunk, blueprint, seed=_SEED.value + number, refine=resolver)
        moves, returns = play(game, mediator, rng)
        refinements = resolver.log if resolver is not None else []
        plays.append({"moves": moves, "refinements": refinements, "returns": returns})
    if _PLAYS.value > 1:
        mean = np.mean([entry["returns"] for entry in plays], axis=0)
        print(f"Mean of {len(plays)} games: utilities {mean[0]:.4f}, {mean[1]:.4f}; welfare {mean.sum():.4f}")
    if folder is not None:
        common.write_json(folder / "plays.json", {"game": str(game), "plays": plays})
        print(f"Written: {folder}/plays.json")


if __name__ == "__main__":
    common.run(main)
