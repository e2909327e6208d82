"""Families of opponents from one search, against each member by itself and an ordinary mixture of them."""

import collections
import math
import pickle
from typing import Any

import numpy as np
import pytest
from absl import flags

from precomp_games import HistoryTree, MixturePolicy, make_policy
from precomp_games.algorithms import best_precomputation, value_against_components
from precomp_games.chess import (
    EngineFamily,
    EnginePool,
    EvaluationStore,
    LinearUtility,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    find_engine,
    opponent_policy,
    play_match,
    position_key,
)
from precomp_games.chess.engines.searches import Iteration, SearchResult
from precomp_games.chess.evaluation.policies import EngineEvaluation, EnginePolicy
from precomp_games.chess.game import ChessGame
from precomp_games.commands._preparing import define_preparation_flags, preparation_settings
from precomp_games.policies.playouts import play_on
from tests.chess.test_engine import EPDS, opening_positions
from tests.chess.test_match import no_book
from tests.chess.test_preparation import BLACK_FIRST, HashEngine, _hash
from tests.random_games import uniform

SETTING: dict[str, Any] = {"nodes": (20, 400), "temperatures_cp": (10, 90), "top_k": (1, 3)}
SMALL: dict[str, Any] = {"num_limits": 4, "num_temperatures": 2}


class Iterating(HashEngine):
    """Searches whose iterations do not depend on the limit that ends them; the first is always finished."""

    def search(self, epds, limit, multipv, samples=0, iterations=False):
        assert iterations
        self.asked += [(epd, str(limit), multipv) for epd in epds]
        return [self.iterated(epd, limit.nodes, multipv) for epd in epds]

    def iterated(self, epd, most, multipv):
        nodes, said = 0, []
        for depth in range(1, 9):
            nodes += 1 + int(2.0**depth * (1 + _hash(f"{epd} {depth} {multipv}")))
            if depth == 1 or nodes < most:
                said.append(Iteration(depth, nodes, self.result(epd, depth, multipv).lines))
        return SearchResult(said[-1].lines, said[-1].depth, most, iterations=tuple(said))


def family(engine=None, fen=BLACK_FIRST, max_plies=6, **changes):
    game = ChessGame({"fen": fen, "max_plies": max_plies})
    return EngineFamily(game, engine or Iterating(), **SETTING | SMALL | changes)


def oracle(made):
    """The ordinary mixture of the members as engines of their own."""
    return MixturePolicy([made.alone(k) for k in range(len(made.members))], made.weights.tolist())


def histories(game, count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        state = game.new_initial_state()
        for _ in range(int(rng.integers(0, 5))):
            state.apply_action(int(rng.choice(state.legal_actions())))
        yield state


def test_members_are_a_grid():
    made = family()
    assert [m.nodes for m in made.members[::6]] == [20, 54, 147, 400]
    assert [m[1:] for m in made.members[:6]] == [(r, k) for r in (10.0, 90.0) for k in (1, 2, 3)]
    assert made.weights.tolist() == [pytest.approx(1 / 24)] * 24
    assert str(made) == (
        "24 opponents by Stockfish 15.1, one of them drawn once per game: nodes 20 to 400, r = 10 to 90 cp, "
        "its 1 to 3 best moves"
    )
    one = family(nodes=100, temperatures_cp=20, top_k=2)
    assert [len(family(temperatures_cp=r, num_temperatures=4).members) for r in (20, (1, 2))] == [12, 48]
    assert one.members == ((100, 20.0, 2),) and "nodes 100, r = 20 cp, its 2 best" in str(one)
    (middle,) = family(num_limits=1, temperatures_cp=20, top_k=2).members
    assert middle.nodes == 89  # the mean of logarithms


def test_a_family_is_a_mixture_of_its_members():
    """Probabilities and posteriors, of states of either player, also after moves that nobody plays."""
    weights = list(range(1, 25))
    made = family(weights=weights)
    mixture = oracle(made)
    states = list(histories(made.game, 40, 1))
    rows = made.action_probabilities_batch(states)
    for state, row, expected in zip(states, rows, mixture.action_probabilities_batch(states), strict=True):
        assert row == pytest.approx(expected, abs=1e-12)
        for player in (0, 1):
            assert made.posterior(state, player) == pytest.approx(mixture.posterior(state, player), abs=1e-9)
    again = pickle.loads(pickle.dumps(made))
    assert again.action_probabilities_batch(states) == rows and again.members == made.members
    for policy, k in zip(made.policies, range(24), strict=True):
        assert policy.action_probabilities(states[0]) == made.alone(k).action_probabilities(states[0])


def test_one_search_of_a_position_and_multipv_serves_all():
    made = family(num_limits=10, num_temperatures=5)
    states = list(histories(made.game, 30, 2))
    made.action_probabilities_batch(states)
    asked = collections.Counter(made.engine.asked)
    positions = {epd for epd, *_ in asked}
    assert max(asked.values()) <= 2  # positions are known by ply, too; a store has the second one
    assert set(asked) == {(epd, "nodes=400", k) for epd in positions for k in (1, 2, 3)}


@pytest.mark.parametrize("player", [0, 1])
def test_trees_are_those_of_the_mixture(player):
    made = family(Iterating(spread=500.0))
    value = EngineEvaluation(HashEngine(500.0), SearchLimit(nodes=9), 2, LinearUtility())
    best_moves = EnginePolicy(made.game, HashEngine(500.0), SearchLimit(nodes=9), 1e-6)

    def best(opponent):
        sides = [uniform, opponent] if player == 0 else [opponent, uniform]
        tree = HistoryTree.from_game(
            made.game,
            sigma_pre=best_moves,
            sigma=sides,
            penalties=(1e-4, math.inf) if player == 0 else (math.inf, 1e-4),
            leaf_value=value,
            position_key=position_key,
        )
        return best_precomputation(tree, player)

    ours, theirs = best(made), best(oracle(made))
    assert ours.tree.num_histories == theirs.tree.num_histories > 20
    assert ours.tree.work["policy_queries"] == theirs.tree.work["policy_queries"]
    assert (ours.tree.mixture.sigma == pytest.approx(theirs.tree.mixture.sigma)) and ours.size > 1
    assert ours.value == pytest.approx(theirs.value) and ours.unprepared < ours.utility
    assert value_against_components(ours) == pytest.approx(value_against_components(theirs))


def test_a_game_is_played_against_one_member():
    """By its own searches alone; who it is, a game's stream says, by the posterior where the game goes on."""
    made = family(max_plies=20, weights=range(1, 25))
    states = [*histories(made.game, 20, 3), *[made.game.new_initial_state()] * 20]
    states = [state for state in states if not state.is_terminal()]
    streams = [np.random.default_rng([7, k]) for k in range(len(states))]
    posteriors = [made.posterior(state, 1) for state in states]
    made.engine.asked.clear()
    ends = play_on(states, (uniform, made), streams, min_probability=0.0)
    asked = set(made.engine.asked)
    known = set()
    for k, (state, posterior, end) in enumerate(zip(states, posteriors, ends, strict=True)):
        stream = np.random.default_rng([7, k])
        member = int(np.searchsorted(np.cumsum(posterior) / posterior.sum(), stream.random(), side="right"))
        own = made.alone(member)
        made.engine.asked.clear()
        (alone,) = play_on([state], (uniform, own), [stream], min_probability=0.0)
        assert alone.history() == end.history()
        known |= set(made.engine.asked)
    assert asked == known and {limit for _, limit, _ in asked} > {"nodes=20", "nodes=400"}


def test_matches_are_against_members():
    made = family(max_plies=20)
    made.engine.asked.clear()
    played = play_match(no_book(BLACK_FIRST), made, uniform, 12, seed=1, max_plies=20)
    assert len({limit for _, limit, _ in made.engine.asked}) > 1
    longer = play_match(no_book(BLACK_FIRST), made, uniform, 15, seed=1, max_plies=20, batch=4)
    assert longer.games[:12] == played.games


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"nodes": (3000, 300)}, r"nodes to be \(least, most\), got \(3000, 300\)"),
        ({"nodes": (1, 2, 3)}, r"nodes to be a number or a pair"),
        ({"nodes": 0}, "nodes to be an integer"),
        ({"temperatures_cp": (0.0, 1.0)}, "temperatures_cp to be"),
        ({"top_k": "2-4"}, "top_k to be"),
        ({"num_limits": 10_000}, "at most 10000 members, got 60000"),
        ({"weights": [1.0]}, "weights"),
    ],
)
def test_what_is_no_family(changes, told):
    with pytest.raises(ValueError, match=rf"EngineFamily\(\): expected .*{told}"):
        family(**changes)


def test_moves_that_are_not_legal_in_a_stored_search():
    class Elsewhere(Iterating):
        def result(self, epd, limit, multipv):
            return super().result(EPDS[0], limit, multipv)

    with pytest.raises(ValueError, match="expected legal moves in stored searches"):
        family(Elsewhere()).action_probabilities(family().game.new_initial_state())


@pytest.mark.engine
def test_members_answer_as_stockfish_with_their_limits(cases):
    """`tools/family_equality.py` does this in a thousand positions; few nodes and many lines may differ."""
    with EnginePool(find_engine()) as pool, EvaluationStore(":memory:") as store:
        engine = StoredEngine(store, pool)
        game = ChessGame()
        made = EngineFamily(game, engine, (500, 2500), (5, 50), (1, 3), num_limits=3, num_temperatures=2)
        states = []
        for epd in opening_positions(8 * cases(20))[::8]:
            states.append(ChessGame({"fen": epd + " 0 1"}).new_initial_state())
        rows = made.component_rows(states)
        assert engine.searches == 3 * len(states) == len(store)
        for k in range(len(made.members)):
            mine = rows.of(k)
            for at, row in enumerate(made.alone(k).action_probabilities_batch(states)):
                part = slice(mine.start[at], mine.start[at + 1])
                found = dict(zip(mine.action[part].tolist(), mine.probability[part].tolist(), strict=True))
                assert found == pytest.approx(row)


def test_families_by_name():
    game = ChessGame()
    made = opponent_policy(game, "family(nodes=100:400,r=0.5,k=2,num_limits=3)", Iterating())
    assert isinstance(made, EngineFamily)
    assert [tuple(m) for m in made.members] == [(100, 0.5, 2), (200, 0.5, 2), (400, 0.5, 2)]
    usual = opponent_policy(game, "family", Iterating())
    assert (len(usual.members), usual.members[0], usual.members[-1]) == (96, (300, 5, 2), (3000, 60, 4))
    mixed = opponent_policy(game, "mixture(a=family(k=2),b=uniform,weights=of(a=3,b=1))", Iterating())
    assert mixed.weights.tolist() == [pytest.approx(0.75 / 32)] * 32 + [0.25]
    for spec in ("family(nodes=9:3)", "family(r=a)", "family(k=2:3:4)", "family(nodes=1:)"):
        with pytest.raises(ValueError, match=r"expected .* \((expected )?.*(nodes|range)"):
            opponent_policy(game, spec, Iterating())
    with pytest.raises(ValueError, match="an engine that searches for a family"):
        make_policy(game, "family")


def test_ranges_of_flags():
    own = flags.FlagValues()
    define_preparation_flags(own)
    own(["", "--opponent_nodes=400-3000", "--r=5-50"])
    settings = preparation_settings(own)
    assert settings.opponent == "family(nodes=400:3000,r=5:50,k=2:2)"
    assert (str(settings.opponent_limit), settings.top_k) == ("nodes=1095", 2)
    assert (
        PreparationSettings(
            **settings.as_dict()
            | {"opponent_limit": settings.opponent_limit, "analyst_limit": settings.analyst_limit}
        ).opponent
        == settings.opponent
    )
    for given, told in (
        (["--r=5-50", "--opponent=uniform"], "--r: expected a number beside --opponent, got a range"),
        (["--top_k=2-4", "--r=5,10"], "--top_k: expected a number beside several --r"),
        (["--r=50-5"], "--r: expected a range such as 5-50, got '50-5'"),
        (["--r=5-5-5"], "--r: expected positive numbers"),
    ):
        own = flags.FlagValues()
        define_preparation_flags(own)
        own(["", *given])
        with pytest.raises(ValueError, match=told):
            preparation_settings(own)
    for text in ("3000-400", "0", "1-", "9" * 17, "two"):
        with pytest.raises(flags.IllegalFlagValueError, match="expected a whole number, or a range such as"):
            own(["", f"--opponent_nodes={text}"])
