"""One side prepares, both sides prepare; entropy bounds."""

import math

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games import HistoryTree, MetaPrecomputationGame, MixturePolicy
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    memory_frontier,
    save_policy,
)
from tests.oracles.games import last, random_policy, random_tree
from tests.wrong_calls import Arg, answering, folder


def table():
    game = random_tree(3, depth=5)  # of perfect information
    kuhn = pyspiel.load_game("kuhn_poker")
    sigma = random_policy(2)
    tree = _tree(game, sigma)
    other_tree = _tree(game, random_policy(3))
    rival_alone = _tree(game, sigma, penalties=(math.inf, 0.001))  # that only player 1 can prepare on
    # That only player 0 can prepare on, and that knows no strategies.
    evaluated = _tree(game, sigma, penalties=(0.001, math.inf), stop_value="evaluate")
    kuhn_policy = policy.UniformRandomPolicy(kuhn)
    kuhn_tree = HistoryTree.from_game(kuhn, sigma_pre=last, sigma=kuhn_policy, penalties=0.01)
    mixed = (sigma, MixturePolicy([sigma, random_policy(3)]))
    against_several = _tree(game, mixed, penalties=(0.001, math.inf), truncate="reach")
    no_trees = [None, "tree.npz", game]
    for_both = Arg(tree, *no_trees, evaluated)

    rival = MetaStrategy.of_set(tree, 1, [])
    rival_of_itself = MetaStrategy.of_set(tree, 0, [])
    rivals_set = np.flatnonzero(tree.infoset_player == 1).tolist()[:1]
    best = best_precomputation(tree, 0)
    learned = best.memorization_set.tolist()
    known = np.flatnonzero(tree.entry_player == 0)[:2]
    no_sets = [rivals_set, learned[1:], [0.9, 1.9], [True], [tree.num_infosets], "0", [learned]]

    halves = tuple(_halves(tree, player) for player in (0, 1))
    others = tuple(_halves(other_tree, player) for player in (0, 1))
    no_profiles = [halves[0], halves[::-1], halves[:1], (*halves, halves[0]), others]
    strategies = Arg(halves, *no_profiles, (halves[0], others[1]), (halves[0], halves[0]))

    no_policies = [
        *answering({}, {10**6: 1.0}, {"a": 1.0}, 1.0, None),
        lambda state: {state.legal_actions()[0]: math.nan},
        lambda state: {state.legal_actions()[0]: 0.5},
    ]
    not_tabular = [
        *no_policies,
        policy.TabularPolicy(pyspiel.load_game("leduc_poker")),
        pyspiel.TabularPolicy({}),
    ]
    alone, table_of_kuhn = HistoryTree.of_game(kuhn), policy.TabularPolicy(kuhn)
    no_games = Arg(alone, tree, pyspiel.load_game("kuhn_poker(players=3)"), "kuhn_pokr", 5)
    kept_policy = f"{folder()}/policy.npz"
    save_policy(table_of_kuhn, kept_policy)
    three_policies, one_of_two = [random_policy(1)] * 3, ("uniform", None)

    meta_game = MetaPrecomputationGame(tree)
    meta_start = meta_game.new_initial_state()
    decision = meta_start
    while decision.is_chance_node():
        decision = decision.child(decision.legal_actions()[0])
    kuhn_start, board = kuhn.new_initial_state(), pyspiel.load_game("tic_tac_toe").new_initial_state()
    return {
        # trees, players and strategies
        "tree": Arg(tree, *no_trees, rival_alone),
        "EntropyBounds.tree": Arg(tree, *no_trees, rival_alone, kuhn_tree),
        "MetaStrategy.tree": for_both,
        "restricted_nash.tree": for_both,
        "robust_precomputation.tree": Arg(evaluated, *no_trees, tree, kuhn_tree),
        **{f"meta_{what}.tree": for_both for what in ("equilibrium", "exploitability", "sequence_form_lp")},
        "player": 0,
        "opponent": Arg(
            rival,
            rival_of_itself,
            MetaStrategy.of_set(other_tree, 1, []),
            rival.memorize,
            sigma,
            (rival_of_itself, rival),
        ),
        "strategy": halves[0],
        "strategies": strategies,
        "memorize": halves[0].memorize,
        "plan": halves[0].realization_plan(),
        "rng": np.random.default_rng(1),
        "memorization_set": Arg(learned, *no_sets),
        "own_entries": Arg([], rival, [10**6]),
        # what is worth memorizing
        "price": Arg(np.arange(tree.num_infosets), "positions"),
        "budget": 3,
        "budgets": Arg([1, 2], [2, 1], [], fine=[(1, 2, 3)]),
        "contamination": Arg(0.1, 1.5, [0.5, -0.5], lambda _: 2.0, fine=[0.5]),
        "keep": Arg(known, fine=[known[:1]]),  # fewer of them are as good
        "frontier": memory_frontier(tree, 0),
        "k": Arg(1, 10**6),
        # The curve is one of real numbers.
        "size": Arg(2.5, [1, -1], [[1], [1, 2]], [True], 1j, fine=[0.5, (1, 2, 3), [2.5]]),
        "penalty": 0.05,
        "at.penalty": Arg(0.01, 0.0009),
        "value_against_components.book": Arg(best_precomputation(against_several, 0), tree, best),
        "book": Arg(best, tree, rival),
        "position_key": str,
        "BestPrecomputation.sigma": Arg(sigma, three_policies, one_of_two),
        "MetaStrategy.sigma": Arg((sigma, None), three_policies, one_of_two),
        # games that are too large for trees
        "game": Arg(
            game,
            kuhn,
            pyspiel.load_game("kuhn_poker(players=3)"),
            pyspiel.load_game("matrix_rps"),
            board,
            "tic_tac_to",
        ),
        "sigma_pre": Arg(random_policy(1), *no_policies),
        "sigma": Arg(sigma, *no_policies, (sigma, None), ("uniform", sigma)),
        "certified_precomputation.sigma": Arg(sigma, *no_policies, (sigma, None), (None, sigma)),
        "evaluator": Arg(lambda state: 0.5, *answering(math.nan, "a", None, [0.5])),
        "best_first_precomputation.price": Arg("infosets", "nothing", 3),
        "best_first_precomputation.check": Arg(None, 3, (sigma,), (sigma, 3)),
        "best_first_precomputation.evaluator": Arg(
            lambda state: 0.5, *answering(math.nan, "a", None, [0.5], 10.0)
        ),
        "certified_precomputation.epsilon": 2.5,
        "games": 4,
        "promise_games": Arg(100, 1),
        "confirmed_precomputation.played": Arg((), [7]),
        "confirmed_precomputation.seed": Arg(1, fine=[10**30, [1], (1, 2, 3)]),
        # both sides prepare
        "model_probability": Arg(0.5, 1.5),
        "solver": "regret_minimization",
        "iterations": 1,
        "MetaGamePolicy.game": Arg(meta_game, tree, game, kuhn, meta_start),
        "strategies_from_policy.game": Arg(meta_game, tree, game, kuhn, meta_start),
        "policy": Arg(policy.UniformRandomPolicy(meta_game), *not_tabular),
        # games alone
        **{f"{name}.game": no_games for name in ("solve", "best_response", "nash_conv")},
        **{
            f"{name}.policy": Arg(kuhn_policy, *no_policies, *not_tabular, fine=...)
            for name in ("best_response", "nash_conv")
        },
        "solve.method": Arg("cfr+", "cfr++"),
        "MemoryFrontier.plot.most": Arg(3.0, -1.0),
        "save_policy.policy": Arg(table_of_kuhn, kuhn_policy, {}),
        "save_policy.path": Arg(f"{folder()}/saved.npz", fine=["nonsense"]),
        "load_policy.path": Arg(kept_policy, True, 1, "a\0b", fine=["nonsense"]),
        "load_policy.game": Arg(kuhn, game, "kuhn_pokr"),
        "state": Arg(
            decision, meta_start, game.new_initial_state(), kuhn_start, kuhn_start.child(0).child(1), board
        ),
        # entropy bounds
        "epsilon": 0.25,
        "v": 0.25,
        "construct.v": Arg(0.25, -1.5),
        "value": 0.25,
        "entropy_lower_bound.penalty": Arg(0.001, 0.0),
        "theorem_2_bound.penalty": Arg(0.001, 0.0),
    }


def _tree(game, sigma, penalties=(0.001, 0.001), truncate="none", **options):
    given = {"sigma_pre": random_policy(1), "sigma": sigma, "penalties": penalties}
    return HistoryTree.from_game(game, truncate=truncate, **given, **options)


def _halves(tree, player):
    return MetaStrategy(tree, player, np.where(tree.infoset_player == player, 0.5, 0.0))
