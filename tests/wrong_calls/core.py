"""History trees, leaf values, policies, the meta-game, clocks and KJ poker."""

import functools
import itertools
import math

import numpy as np
import pyspiel
from open_spiel.python import policy
from tqdm import tqdm

from precomp_games import ClockGame, HistoryTree, RolloutValues, register_policy
from tests.dask_clusters import cluster_address
from tests.oracles.games import last
from tests.wrong_calls import Arg, answering, folder

_CLOCK = {"game": {"name": "tic_tac_toe"}, "time_0": 3, "time_1": 3}
_NEW_NAMES = (f"fresh_{k}" for k in itertools.count())


def table():
    kuhn, leduc = pyspiel.load_game("kuhn_poker"), pyspiel.load_game("leduc_poker")
    uniform = policy.UniformRandomPolicy(kuhn)
    tree = HistoryTree.from_game(kuhn, sigma_pre=last, sigma=uniform, penalties=0.01)
    tree.save(folder() / "tree.npz")
    evaluated = HistoryTree.from_game(
        kuhn,
        sigma_pre=last,
        sigma=last,
        penalties=(0.01, math.inf),
        leaf_value=lambda state: 0.0,
        stop_value="evaluate",
    )
    start = kuhn.new_initial_state()
    decision = start.child(0).child(1)
    board = pyspiel.load_game("tic_tac_toe").new_initial_state()
    strange_states = [board, start, decision.child(0).child(0)]
    clock_game = ClockGame(_CLOCK)
    other_tabular = policy.TabularPolicy(leduc)
    sigma = Arg(uniform, other_tabular, lambda state: None, lambda state: {7: 1.0}, [other_tabular] * 2)
    return {
        # history trees
        "game": Arg(kuhn, start, pyspiel.load_game("kuhn_poker(players=3)")),
        "make_policy.game": Arg(kuhn, start, pyspiel.load_game("matrix_pd")),
        "with_game.game": Arg(kuhn, leduc),
        "sigma_pre": sigma,
        "sigma": sigma,
        "penalties": Arg(1.0, 0.0, [0.1, math.nan], (0.1, 0.2, 0.3), fine=[math.inf, 0.5]),
        "with_penalties.penalties": Arg(0.02, 0.001, (0.1, 0.001), [0.1], fine=[math.inf, 0.5]),
        "weight": Arg(lambda state: 1.0, *answering(-1.0, "much", math.inf)),
        "with_weights.weight": np.ones(tree.num_infosets),
        "leaf_value": Arg("exact", *answering("much", 1e6, None), RolloutValues),
        "position_key": str,
        "from_game.position_key": Arg(str, *answering([1], 0)),
        "price": Arg("infosets", "positions"),
        "min_probability": Arg(1e-6, 0.9),
        "max_histories": Arg(1000, 0, 3),
        "max_memory": Arg("10GB", fine=[None, math.inf]),
        "config.progress": tqdm,
        "history": Arg(5, 10**6),
        "actions": Arg(tree.actions(5), [0, 1.0], 3, fine=[(1, 2, 3)]),
        "infoset": Arg(1, 10**6),
        "entry": Arg(1, 10**6),
        "other": tree,
        "infoset_of.state": Arg(decision, board),
        # A file that is not there, or cannot be written, is an OSError.
        "path": Arg(folder() / "saved.npz", fine=["nonsense"]),
        "load.path": Arg(folder() / "tree.npz", True, 1, "a\0b", fine=["nonsense"]),
        # leaf values
        "function": str,
        "epsilon": Arg(0.2, 0.0, 1e-200),
        "delta": Arg(0.1, 0.0, 1.0),
        "games": Arg(7, 0),
        # policies
        "player": Arg(0, 2),
        "player_id": Arg(0, 1),
        "state": Arg(decision, *strange_states),
        "states": Arg([decision], *[[state] for state in strange_states]),
        "posterior.state": Arg(decision, board),
        "posteriors.states": Arg([decision], [board]),
        "policy": last,
        "policies": Arg([uniform, last], [], "uniform"),
        "weights": Arg([0.25, 0.75], [0.5, 0.0], [1.0]),
        "entries": lambda state: [],
        "spec": Arg("cfr(iterations=2)", "cfr(10)", {"name": "cfr", "seed": 3}),
        "register_policy()": _register,
        "name": Arg("fresh", "uniform", "two words", "fresh?", ""),
        "network": Arg(lambda tensors, masks: masks / masks.sum(axis=1, keepdims=True), {"0": {0: 1.0}}),
        "factory": Arg(lambda game, seed=0: uniform, lambda: None, lambda game, seed: None, "uniform"),
        "touches": Arg(["seed"], ["file"], "seed"),
        # the meta-game
        "tree": Arg(
            tree,
            *[{"penalty_0": wrong} for wrong in ("x", True, math.nan, -3.0)],
            {"penalty": "none"},
            {"check_supports": 1},
            {"game": "kuhn_poker"},
            {"game": {"name": 3}},
            {"sigma": "uniform"},
            {"tree_file": 3},
            {"tree_file": str(folder() / "t.npz"), "penalty_0": 0.3},
            evaluated,
            fine=[None],
        ),
        "source": Arg(tree, pyspiel.load_game("kuhn_poker(players=3)"), evaluated),
        "iig_obs_type": pyspiel.IIGObservationType(perfect_recall=True),
        # OpenSpiel's C++ side gives its parameters first where it has no observation type.
        "make_py_observer.params": Arg({}, fine=[None]),
        # games
        "ClockGame.params": Arg(
            _CLOCK,
            {"time_0": 0},
            {"time_0": 2.5},
            {"time_1": True},
            {"move_time": -1},
            *[{"game": wrong} for wrong in ("no_such_game", {"name": 3})],
            *[{"game": {"name": name}} for name in ("kuhn_poker", "matrix_pd")],
            fine=[None],
        ),
        "encode.action": Arg(2, 9),
        "encode.ticks": Arg(1, 5),
        "decode.action": Arg(3, 45),
        "ClockGame.ticks": Arg(1, fine=[10**30]),
        "SearchClock.game": clock_game,
        "search": lambda state, nodes: _Found,
        "nodes_per_tick": Arg(100, 0),
        "moves": Arg(5, 0),
        "left": 5,
        "nodes": 100,
        "base_key": Arg(str, fine=[None]),
        # clusters
        "cluster": Arg(cluster_address(), "local:0", "x:8786"),
        "tasks": Arg([1], fine=...),
    }


class _Found:
    action = 4
    nodes = 100


@functools.wraps(register_policy)
def _register(name, factory, **options):
    """A name is new only once."""
    register_policy(next(_NEW_NAMES) if name == "fresh" else name, factory, **options)
