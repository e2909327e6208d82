"""Values of parameters of public functions, for `tests/test_wrong_calls.py`.

Numbers, flags and words follow from annotations; the rest is here, under the name of the parameter, or as an
object of its class. Where a name means something else, its key is "function.parameter", "method.parameter"
(of all classes), "Class.parameter" (of its constructor and methods) or "face.parameter". "function()" is
called in place of a function, and methods on "Class()", if they are here.
"""

import atexit
import dataclasses
import datetime
import functools
import itertools
import json
import math
import pathlib
import sys
import tempfile
import types
from typing import Any

import chess
import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games import ClockGame, HistoryTree, MetaPrecomputationGame, MixturePolicy, register_policy
from precomp_games import algorithms as solvers
from precomp_games import chess as play
from precomp_games.algorithms import MetaStrategy, efce, lookahead, search
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.model.engine_policies import LinearUtility
from precomp_games.chess.model.model import preparation_policies
from tests.chess import fake_engine
from tests.dask_clusters import cluster_address
from tests.oracles.efce import battleship, held, resolving, sheriff
from tests.oracles.engines import HashEngine
from tests.oracles.games import first, last, random_policy, random_tree

_PARTS = ("", ".algorithms", ".algorithms.efce", ".algorithms.lookahead", ".algorithms.search", ".chess")
FACES = [f"precomp_games{part}" for part in _PARTS]
EXEMPT = {
    "Menu.entries_batch": "what expansions ask, with states of their own",
    "NetworkPolicy.action_probabilities_batch": "the same",
    "Resolving": "made by the library: of(), of_subgames() and deeper()",
}


class Arg:
    """A value that a parameter takes, and what it refuses beside what is generated.

    fine: what is generated as wrong and is rightly accepted; `...`: whatever it may be.
    """

    def __init__(self, good, *wrong, fine=()):
        self.good, self.wrong, self.fine = good, wrong, fine


def answering(*answers):
    """Return functions of anything, each with its answer."""
    return [lambda *given, answer=answer: answer for answer in answers]


NO_POLICIES = [
    *answering(None, 1.0, {}, {10**6: 1.0}, {"a": 1.0}),
    lambda state: dict.fromkeys(state.legal_actions(), 0.3),
    lambda state: dict.fromkeys(state.legal_actions(), math.nan),
    policy.UniformRandomPolicy,
]
NO_EVALUATIONS = answering(None, math.nan, "1", [0.5])
NO_ORDERS = [
    *answering(None, [], 3),
    lambda key, actions: [*actions[1:], "x"],
    lambda key, actions: list(map(float, actions)),
]


@functools.cache
def folder():
    """Return a folder that lives as long as the tests."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    return pathlib.Path(made.name)


@functools.cache
def values():
    """Return all values: `Arg`s by the names of parameters, and by the classes of objects."""
    named, objects = {}, []
    for some_named, some_objects in (_of_games(), _of_preparation(), _of_correlation(), _of_chess()):
        named |= some_named
        objects += some_objects
    named |= {type(each): each for each in objects}
    return {key: each if isinstance(each, Arg) else Arg(each) for key, each in named.items()}


def _of_games():
    """Return values for games, trees, policies, searches and players with limited lookahead."""
    game, kuhn = random_tree(3, depth=5), pyspiel.load_game("kuhn_poker")  # of perfect information, and not
    board, three = pyspiel.load_game("tic_tac_toe"), pyspiel.load_game("kuhn_poker(players=3)")
    state, kuhn_state, position = (_moved(each.new_initial_state()) for each in (game, kuhn, board))
    tree, uniform = _tree(game), policy.UniformRandomPolicy(game)
    tree.save(folder() / "tree.npz")
    clock = ClockGame({"game": {"name": "tic_tac_toe"}, "time_0": 3, "time_1": 3})
    no_games: list[Any] = [{"name": 3}, "no_game"]
    new_names = (f"fresh_{k}" for k in itertools.count())

    @functools.wraps(register_policy)
    def register(name, factory, **options):  # a name is new only once
        register_policy(next(new_names) if name == "fresh" else name, factory, **options)

    budget = search.SearchBudget(depth=2)
    minimax = functools.partial(search.minimax, budget=budget)
    evaluation = lookahead.equilibrium_values(kuhn, 1)
    kuhn_policy = Arg(policy.UniformRandomPolicy(kuhn), *NO_POLICIES, uniform)
    no_evaluations = [*NO_EVALUATIONS, *(lookahead.equilibrium_values(each, 0) for each in (kuhn, game))]
    named = {
        "game": Arg(game, "kuhn_pokr", three),
        "state": state,
        "states": [state],
        "search.player_id": Arg(1, 0),
        "base_key": str,
        "policy": last,
        "sigma_pre": Arg(random_policy(1), *NO_POLICIES, [last] * 3),
        "sigma": Arg(random_policy(2), *NO_POLICIES, [last] * 3),
        "penalties": Arg(1.0, 0.0, [0.1, math.nan], (0.1, 0.2, 0.3)),
        "with_weights.weight": np.ones(tree.num_infosets),
        "leaf_value": Arg("exact", *NO_EVALUATIONS),
        "position_key": str,
        "actions": tree.actions(5),
        **dict.fromkeys(["path", "save.path"], folder() / "saved"),
        "load.path": folder() / "tree.npz",
        "policies": Arg([uniform, last], []),
        **dict.fromkeys(["infoset_of.state", "posterior.state"], Arg(state, fine=[_over(state)])),
        "posteriors.states": Arg([state], fine=[[_over(state)]]),
        **dict.fromkeys(["encode.action", "decode.action"], 2),
        "MixturePolicy.weights": Arg([0.25, 0.75], [0.5, 0.0]),
        "entries": lambda state: [],
        "make_policy.game": Arg(kuhn, pyspiel.load_game("matrix_pd")),
        "spec": "cfr(iterations=2)",
        "register_policy()": register,
        "name": Arg("fresh", "uniform", "two words"),
        "network": lambda tensors, masks: masks,
        "factory": Arg(lambda game, seed=0: uniform, lambda: None, lambda game, seed: None),
        "touches": Arg(["seed"], ["file"]),
        "ClockGame.params": Arg(clock.get_parameters(), {"time_0": 0}, *({"game": it} for it in no_games)),
        "make_py_observer.params": {},
        "iig_obs_type": pyspiel.IIGObservationType(perfect_recall=True),
        "ticks": 1,
        "SearchClock.search": lambda state, nodes: types.SimpleNamespace(action=4, nodes=100),
        "cluster": cluster_address(),
        "function": str,
        "tasks": Arg([1], fine=...),
        "seed": Arg(1, fine=[10**30, -(10**30)]),
        "copies": Arg(1, fine=[10**30, -(10**30)]),
        # searches
        "search.game": Arg(board, three),
        "search.state": Arg(position, kuhn_state),
        "known_of.game": board,
        "search.policy": search.SearchPolicy(board, minimax),
        "search.search": minimax,
        "evaluator": Arg(lambda state: 0.0, *NO_EVALUATIONS),
        "ordering": Arg(lambda state, actions: actions[::-1], *NO_ORDERS),
        "alpha_beta.position_key": Arg(str, *answering([1])),
        "mcts.budget": search.SimulationBudget(20),
        "restart_at.state": Arg(position, fine=...),
        "SearchBudget.depth": 3,
        "simulations": 20,
        # players with limited lookahead
        "lookahead.game": Arg(kuhn, three, pyspiel.load_game("liars_dice_ir(dice_sides=3,numdice=1)")),
        "lookahead.state": kuhn_state,
        **dict.fromkeys(["lookahead.policy", "lookahead.strategy"], kuhn_policy),
        "evaluation": Arg(evaluation, *no_evaluations),
        **dict.fromkeys(["independent_noise.evaluation", "cumulative_noise.evaluation"], evaluation),
        "FollowerType.evaluation": Arg(evaluation, fine=[type(evaluation)]),
        "lookahead.order": Arg(lambda key, actions: actions[::-1], *NO_ORDERS),
        "FollowerType.order": Arg(lambda key, actions: actions[::-1]),
        "tie_breaking": Arg("static", "adversarial"),
        "types": Arg([lookahead.FollowerType(k, evaluation) for k in (1, 2)], []),
        "commit_against_types.objective": Arg("mean", "worst"),
        "lookahead.weights": Arg([0.3, 0.7], [0.0, 1.0]),
    }
    return named, [tree, clock, budget, evaluation, game]


def _of_preparation():
    """Return values for those who prepare on a tree, one player or both."""
    game, kuhn = random_tree(3, depth=5), pyspiel.load_game("kuhn_poker")
    tree, other_tree = _tree(game), _tree(game, sigma=random_policy(3))
    evaluated = _tree(game, penalties=(0.001, math.inf), stop_value="evaluate")  # that knows no strategies
    mixed = (random_policy(2), MixturePolicy([random_policy(2), random_policy(3)]))
    against_several = _tree(game, sigma=mixed, penalties=(0.001, math.inf), truncate="reach")
    best = solvers.best_precomputation(tree, 0)
    known = best.memorization_set.tolist()
    rivals = [int(np.argmax(tree.entry_player == 1))]
    half, rival = (MetaStrategy(tree, i, np.where(tree.infoset_player == i, 0.5, 0.0)) for i in (0, 1))
    other = MetaStrategy.of_set(other_tree, 1, [])
    meta_game = MetaPrecomputationGame(tree)
    meta_policy = policy.UniformRandomPolicy(meta_game)
    kuhn_table = policy.TabularPolicy(kuhn)
    solvers.save_policy(kuhn_table, folder() / "policy.npz")
    no_tree: list[Any] = [{"penalty_0": "x"}, {"penalty_0": -3.0}, {"penalty": 1}, {"tree_file": 3}]
    no_tree += [{"tree_file": "t.npz", "penalty_0": 0.3}]
    no_tree += [{"check_supports": 1}, {"sigma": "uniform"}, {"game": "kuhn_poker"}, {"game": {"name": 3}}]
    named = {
        "robust_precomputation.tree": Arg(evaluated, tree),
        "opponent": Arg(rival, half, other),
        "strategies": Arg((half, rival), (rival, half), (half, rival, half), (half, other)),
        "memorize": half.memorize,
        "of_plan.plan": half.realization_plan(),
        "memorization_set": Arg(known, rivals, known[1:], [0.9], [True], [tree.num_infosets], "0"),
        "own_entries": Arg([], rival, rivals),
        "algorithms.price": Arg(np.arange(tree.num_infosets), "positions"),
        "budgets": Arg([1, 2], [2, 1]),
        "contamination": Arg(0.1, 1.5, [0.5, -0.5], lambda _: 2.0),
        "algorithms.keep": Arg(np.array(known[:2]), rivals, fine=[np.array(known[:1])]),
        "size": Arg(2.5, [1, -1], [[1], [1, 2]], fine=[[2.5]]),
        "at.penalty": Arg(0.01, 0.0009),
        "value_against_components.book": Arg(solvers.best_precomputation(against_several, 0), best),
        "policy.sigma": Arg(random_policy(2), [last] * 3, ("uniform", None)),
        "certified_precomputation.sigma": Arg(random_policy(2), (None, last), (last, None), *NO_POLICIES),
        "construct.v": Arg(0.25, -1.5),
        "confirmed_precomputation.penalty": 0.05,
        "MetaGamePolicy.action_probabilities.state": _moved(meta_game.new_initial_state()),
        "strategies_from_policy.policy": Arg(meta_policy, kuhn_table, *NO_POLICIES),
        **dict.fromkeys(["solve.game", "best_response.game", "nash_conv.game"], Arg(kuhn, tree)),
        **dict.fromkeys(["best_response.policy", "nash_conv.policy"], Arg(kuhn_table, *NO_POLICIES)),
        "save_policy.policy": kuhn_table,
        "load_policy.game": kuhn,
        "load_policy.path": folder() / "policy.npz",
        "source": Arg(tree, evaluated, "kuhn_poker(players=3)"),
        "MetaPrecomputationGame.tree": Arg(tree, evaluated, *no_tree),
    }
    return named, [best, solvers.memory_frontier(tree, 0), half, meta_game, np.random.default_rng(1)]


def _of_correlation():
    """Return values for correlation plans, equilibria, refinements and the mediator."""
    game, public = battleship(1, 2, 2), efce.public_moves(battleship(1, 2, 2), 1)
    whole, other, decomposed = held(game), held(battleship(1, 3, 2)), held(game, 1)
    uniform = efce.uniform_blueprint()
    jittered, other_seed = efce.jittered_blueprint(1), efce.jittered_blueprint(2)
    plan, other_plan = efce.CorrelationPlan.of(whole, jittered), efce.CorrelationPlan.of(other, uniform)
    refined, of_other_seed = _refined(decomposed, jittered), _refined(decomposed, other_seed)
    # Sheriff with its first round of moves as subgames, and then what the first of them holds.
    two_rounds = held(sheriff(1, 1, 3), 1)
    level, further = resolving(two_rounds, jittered), efce.public_moves(sheriff(1, 1, 3), 2)
    refined_first = _refined(two_rounds, jittered)
    deeper = level.deeper(refined_first, further)
    mediator, state = efce.Mediator(whole, uniform), game.new_initial_state()
    mediator.recommend(state)
    several = np.array([0, 1])  # the empty sequence and another one
    no_games = [*map(pyspiel.load_game, ("kuhn_poker", "kuhn_poker(players=3)")), decomposed.restrict(0)[0]]
    silent = types.SimpleNamespace(entries=lambda *given: None)
    richer = held(battleship(1, 2, 2, multiplier=5.0), 1)
    named = {
        "Resolving()": level,
        "Mediator()": mediator,
        "efce.game": Arg(game, *no_games),
        "SequenceGame.of.game": Arg(game, "sherif"),
        "public": Arg(public, *answering([1], None)),
        "only": (0, 1),
        "SequenceGame.infoset_of.key": Arg(whole.players[0].keys[1], "no such"),
        "SequenceGame.restrict()": decomposed.restrict,
        **dict.fromkeys(["CorrelationPlan.entries.first", "second"], Arg(several, several + 99)),
        "xi": Arg(np.array(plan.xi), 2.0 * plan.xi, -plan.xi, other_plan.xi),
        "CorrelationPlan.welfare()": refined.plan.welfare,
        "blueprint": Arg(uniform, efce.uniform_blueprint, other_plan, silent),
        "policy_blueprint.policies": (policy.TabularPolicy(game),) * 2,
        "floors": Arg((-3.0, -math.inf), (0.0, math.inf), (0.0, "a")),
        "of_subgames.game": Arg(decomposed, whole, decomposed.restrict(0)[0]),
        "Resolving.name": level.names[0],
        "Resolving.deeper.refined": Arg(refined_first, refined, _refined(two_rounds, jittered, "separate")),
        "Resolving.complete()": deeper.complete,
        "complete.refinements": Arg([efce.refine_lp(deeper.problem(deeper.names[0]))], [refined]),
        "stitch.game": Arg(decomposed, whole, richer),
        "stitch.blueprint": Arg(jittered, other_seed, other_plan),
        "refinements": Arg([refined], [refined] * 2, [of_other_seed]),
        **dict.fromkeys(["safety.refined", "safety.blueprint"], Arg(plan, other_plan, refined.plan)),
        "Mediator.blueprint": Arg(uniform, efce.uniform_blueprint),
        "efce.state": state,
        "played.action": Arg(state.legal_actions()[0], 999),
    }
    return named, [whole, plan, plan.pairs, refined.problem]


def _refined(game, blueprint, bounds="aggregate"):
    level = resolving(game, blueprint, bounds)
    return efce.refine_lp(level.problem(level.names[0]))


def _of_chess():
    """Return values for chess; the engine is the tests' own, a hash function."""
    game, start = pyspiel.load_game("python_chess"), pyspiel.load_game("python_chess").new_initial_state()
    over = _over(start)
    epd, move = chess.Board().epd(), chess.Move.from_uci("e2e4")
    fake, limit = [sys.executable, fake_engine.__file__], play.SearchLimit(nodes=100)
    pool, on_cluster = play.EnginePool(fake, workers=1), play.DaskEngine(fake, cluster_address())
    atexit.register(on_cluster.close)  # before its cluster goes, of which Dask would tell
    result, store = SearchResult((Line("e2e4", 30, None),), 3, 100), play.EvaluationStore(":memory:")
    key = ("Fake 1.0", limit, 1, epd)
    store.put(*key, result)
    engine, analyst = play.StoredEngine(store, pool), HashEngine(spread=400.0)
    two = play.Engines(engine, engine)

    settings = play.PreparationSettings(penalty=0.002, opponent_temperature_cp=80.0, max_plies=3)
    with_menu = dataclasses.replace(settings, menu=2, max_plies=4, penalty=0.05)
    searched = dataclasses.replace(settings, max_plies=2, top_k=1, analyst_limit=limit, opponent_limit=limit)
    policies, without_menu = (preparation_policies(each, analyst) for each in (with_menu, settings))
    tree = play.preparation_tree(dataclasses.replace(settings, max_plies=5), analyst)
    pawns = dataclasses.replace(settings, fen="4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1")
    states = list(solvers.best_precomputation(tree, 0).states())
    book, made = play.preparation_book(tree, 0, states), play.prepare(searched, two)
    drill = play.Drill(book, ":memory:", seed=1)
    (folder() / "result.json").write_text(json.dumps(made.to_json()))
    games, mine = folder() / "people.pgn", folder() / "mine.pgn"
    games.write_text('[White "A"]\n[Black "B"]\n[Date "1990.??.??"]\n\n1. e4 e5 2. Nf3 *\n\n')
    mine.write_text("1. e4 e5 (1... c5 2. Nf3) 2. Nf3 Nc6 3. Bb5 *\n")
    position = play.BookPosition((), (play.BookMove(move, 1.0),), 1.0, 0.1)
    repertoire, now = (
        play.read_repertoire(mine, chess.WHITE),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    )
    empty = play.Book(chess.Board(), chess.WHITE, [])
    named = {
        "DaskEngine()": on_cluster,
        "Drill()": drill,
        "chess.game": game,
        "ChessGame.params": Arg({"max_plies": 9}, {"fen": "8/8"}, {"max_plies": 0}, {"threefold": "yes"}),
        "move": move,
        "action": Arg(play.action_of(move), 0, 4096),
        "chess.state": start,
        "chess.states": Arg([start], [start, None]),
        "side": chess.WHITE,
        # engines and their store
        **dict.fromkeys(["board_key.state", "position_key.state"], Arg(start, fine=[over])),
        "command": Arg(fake, "", [""]),
        "options": Arg({"Hash": 8}, {"MultiPV": 2}, {"UCI_Elo": 1400}, {"Style": "Wild\nquit"}),
        "SearchLimit.nodes": 5,
        "text": Arg("movetime=5", "nodes=0", "nodes=" + "9" * 5000),
        "EvaluationStore.epds": [epd],
        "epds": Arg([epd], epd, ["nonsense"]),
        "pool": pool,
        "StoredEngine.engine_id": Arg("Fake 1.0", "Fake 2.0"),
        "EvaluationStore.path": ":memory:",
        "export.path": folder() / "exported",
        "EvaluationStore.engine": "Fake 1.0",
        "EvaluationStore.limit": Arg(limit, "nodes=0"),  # or its text
        "epd": epd,
        "keys": Arg([key], [key[:3]]),
        "put.result": Arg(result, SearchResult((), 1, 1)),
        # policies and evaluations
        "utility": LinearUtility(),
        "chess.spec": Arg("uci(r=20,top_k=3)", "nonsense", "uci(nodes=1,depth=1)"),
        "prior": Arg("uniform", "nonsense"),
        **dict.fromkeys(["file", "read_games.path"], games),
        **dict.fromkeys(["games_policy.player", "read_games.player"], Arg("A", "Nobody")),
        "read_repertoire.fen": Arg(chess.STARTING_FEN, "nonsense"),
        "paths": Arg([str(mine)], [], [None], "\0"),
        # preparations
        **dict.fromkeys(["match.settings", "prepare.settings"], searched),
        "judge_repertoire.settings": with_menu,
        "record": Arg(set(), {7}),
        "own": Arg(first, 7),
        "Engines.match.games": Arg(1, 0),
        "match.seed": Arg(1, -1, fine=[[1]]),
        "prepare.plan": Arg((), (3, 2)),
        "folder": folder(),
        "opponent_temperature_cp": Arg(80.0, [1.0, 0.0], fine=[[80.0]]),  # one opponent, or several
        "opponent_weights": Arg((), [1.0, 2.0], [0.0]),
        "files": Arg(None, fine=...),
        "preparation_book.tree": Arg(tree, play.preparation_tree(pawns, analyst)),
        "preparation_book.player": Arg(0, 1),
        "preparation_book.states": states,
        **dict.fromkeys(["control_book.policies", "judge_repertoire.policies"], Arg(policies, without_menu)),
        # books
        "moves": Arg((play.BookMove(move, 1.0),), ()),
        "history": (),
        "Book.start": Arg(chess.Board(), chess.Board(None)),
        "Book.positions": Arg([position], [position] * 2),
        "write_pgn.headers": Arg({"White": "Us"}, {"Result": "1-0"}, {"White": "a\nb"}, {"a b": "c"}),
        "books": Arg([play.BookPage(made)], []),
        "formats": ["pgn", "csv"],
        "book_exits.opponent": Arg(first, book, *answering({})),
        "chess.leaf_value": Arg(lambda state: 0.5, *answering(None)),
        "Drill.book": Arg(book, empty),
        "Drill.path": ":memory:",
        "now": Arg(now, datetime.datetime(2026, 1, 1), now.date()),
        "card": drill.cards[0],
        "position": drill.line(drill.cards[0]),
    }
    return named, [limit, store, engine, book, made, two, settings, policies, repertoire, start]


def _tree(game, sigma=None, penalties=(0.001, 0.001), truncate="none", **options):
    given = {"sigma_pre": random_policy(1), "sigma": sigma or random_policy(2), "penalties": penalties}
    return HistoryTree.from_game(game, truncate=truncate, **given, **options)


def _over(state):
    return state if state.is_terminal() else _over(state.child(state.legal_actions()[0]))


def _moved(state):
    """Return a state where a player moves and somebody has moved before."""
    state = state.child(state.legal_actions()[0])
    return _moved(state) if state.is_chance_node() else state
