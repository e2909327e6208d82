"""Trees that grow best first, by evaluations: orders, prices, budgets and menus against the whole tree."""

import itertools
import math
import pickle
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import Menu
from precomp_games.algorithms import best_first_precomputation, best_precomputation, memory_frontier
from precomp_games.algorithms.preparation import best_first
from precomp_games.algorithms.preparation.evaluated_search import BestFirstSearch
from precomp_games.algorithms.preparation.partial_tree import PreparationProblem
from tests.oracles.games import named_by, random_tree
from tests.oracles.graphs import follow
from tests.oracles.preparation import NEAR, evaluation, preparations, prepared, worth
from tests.properties import examples

_ORDERS = ("certified", "optimistic")
_POSITIONS = {"price": "positions", "position_key": str}


def _grown(setting, penalty, evaluator=None, **options):
    game, player, pre = setting.game, setting.player, options.pop("pre", setting.pre[setting.player])
    evaluator = evaluator or evaluation(setting.seed)
    return best_first_precomputation(game, pre, setting.sigma, penalty, player, evaluator, **options)


def _positions_of(found):
    """Return the number of positions that a result pays for, and check that each has one entry."""
    rows = {}
    for history, row in zip(found.histories, found.rows, strict=True):
        assert rows.setdefault(str(follow(found.game.new_initial_state(), history)), row) == row
    return len(rows)


def _check_opened(setting, penalty, found, exact):
    """`HistoryTree.from_game` takes what best-first preparation leaves behind: frontier and budgets."""
    player, start = setting.player, setting.game.new_initial_state()
    tree = setting.having(found.menu).evaluated(penalty)
    assert tree.num_infosets <= found.work["opened"]  # some menus are empty
    best = best_precomputation(tree, player).value
    assert best >= found.lower - 1e-12
    assert memory_frontier(tree, player).at(penalty).value == pytest.approx(best, abs=1e-12)
    copied = pickle.loads(pickle.dumps(found.menu))
    assert copied.entries_batch([start]) == found.menu.entries_batch([start])
    if exact:
        assert best == pytest.approx(found.lower, abs=NEAR)


@examples(320)
@given(
    preparations("perfect", depth=7, fewest=0) | preparations("perfect", repeated=True, depth=7, fewest=0),
    st.sampled_from((0.01, 0.05, 0.2)),
    st.sampled_from((None, 0, 1, 2, 3, 5)),
    st.sampled_from(_ORDERS),
    st.sampled_from((0.0, 0.1, 0.5)),
    st.sampled_from((1, 2, 8)),
)
def test_against_the_whole_tree(setting, penalty, budget, order, gap, batch):
    """At any time intervals hold, and a set has its reported value; without a gap it is the best one.

    What has not been evaluated counts as little as possible. Reports on the way change nothing.
    """
    shared = named_by(setting.game) == "position"
    options = {"gap": gap, "order": order, "batch": batch, "budget": budget} | (_POSITIONS if shared else {})
    tree, near, reported = setting.evaluated(penalty, position_key=str if shared else None), 1e-12, []
    price = "positions" if shared else "infosets"
    best = best_precomputation(tree, setting.player, budget=budget, price=price)
    found = _grown(setting, penalty, improved=reported.append, **options)
    alone = _grown(setting, penalty, **options)
    assert (found.histories, found.rows, found.lower) == (alone.histories, alone.rows, alone.lower)
    assert found.lower - NEAR <= worth(tree, found) <= best.value + NEAR <= found.upper + 2.0 * NEAR
    if budget is None and not shared:
        assert all(low - NEAR <= best.value <= up + NEAR for _, low, up in found.trace)
    assert found.work["evaluations"] <= tree.work["leaf_evaluations"]
    asked = [0, *(each.work["evaluations"] for each in reported)]
    assert all(after > 9 / 8 * before for before, after in itertools.pairwise(asked))
    assert asked[-1] <= found.work["evaluations"] <= max(9 / 8 * asked[-1], asked[-1] + 4 * batch)
    for each in (*reported, found):
        assert each.paid == (_positions_of(each) if shared else each.size)
        assert budget is None or each.paid <= budget
        assert each.penalty == (penalty if budget is None else 0.0)
        assert worth(tree, each) >= each.lower - near
    lower = [each.lower for each in (*reported, found)]
    if budget is None and not shared:
        assert lower == sorted(lower)
        _check_opened(setting, penalty, found, exact=order == "certified" and gap == 0.0)
        if order == "certified":
            assert found.reached and found.gap <= gap + NEAR
            if gap == 0.0:
                cut = setting.evaluated(penalty, truncate="reach")
                assert batch > 1 or found.work["evaluations"] <= cut.work["leaf_evaluations"]
                assert found.lower == pytest.approx(best.value, abs=NEAR)
                assert best.unprepared + found.gain.sum() - penalty * found.size <= best.value + NEAR


def test_the_optimistic_order_needs_fewer_evaluations_and_both_need_fewer_than_the_whole_tree():
    """It prunes where it can, and its bound covers what it may have missed."""
    asked = {order: 0 for order in _ORDERS}
    whole = 0
    for seed in range(8):
        setting = prepared(random_tree(seed, depth=7), seed, seed % 2, menu=3, support="partial")
        whole += setting.evaluated(0.005).work["leaf_evaluations"]
        for order in _ORDERS:
            asked[order] += _grown(setting, 0.005, gap=0.0, order=order).work["evaluations"]
    assert asked["optimistic"] < 0.8 * asked["certified"] < 0.8 * whole


@pytest.mark.parametrize(("order", "share"), [("certified", 0.8), ("optimistic", 0.5)])
def test_with_a_price_for_positions_the_best_set_is_mostly_found(order, share):
    found = []
    for seed, budget in itertools.product(range(10), (None, 2)):
        setting = prepared(random_tree(seed, depth=6, width=2, chance=0.1), seed, seed % 2, menu=3)
        grown = _grown(setting, 0.02, gap=0.0, order=order, budget=budget, batch=3, **_POSITIONS)
        tree = setting.evaluated(0.02, position_key=str)
        best = best_precomputation(tree, seed % 2, price="positions", budget=budget)
        found.append(grown.lower > best.value - NEAR)
    assert np.mean(found) > share


@examples(160)
@given(preparations("perfect", depth=7, menu=True, fewest=0))
def test_alternatives_say_what_choosing_them_would_cost(setting):
    tree, menu = setting.evaluated(0.02), setting.pre[setting.player]
    best = best_precomputation(tree, setting.player)
    for state in best.states():
        rows = [tree.memorized_row(state.entry), *(other.row for other in state.alternatives)]
        assert sum(map(len, rows)) == len(set().union(*rows))
        assert all(other.loss >= -1e-12 for other in state.alternatives)
    # Taking the alternative at the first state, and Algorithm 1 after it, loses so much.
    for state in itertools.islice(best.states(), 1):
        for other in state.alternatives:

            def only(at, row=other.row, first=state.actions):
                return [row] if tuple(at.history()) == first else menu.entries(at)

            forced = _grown(setting, 0.02, pre=Menu(only), gap=0.0)
            assert forced.lower >= best.value - other.loss - 1e-12
            if state.actions in forced.histories:  # and elsewhere stopping is better than this entry
                assert forced.lower == pytest.approx(best.value - other.loss, abs=1e-12)


def test_it_stops_when_it_was_to():
    setting = prepared(random_tree(3, depth=7), 3, 1, menu=3, support="partial")
    found = _grown(setting, 0.01, gap=0.0, batch=2, max_evaluations=6)
    assert not found.reached and found.work["evaluations"] == 6
    assert found.lower <= found.upper
    assert found.trace[-1] == (found.work["evaluations"], found.lower, found.upper)
    rounds = iter([False, True])
    assert not _grown(setting, 0.01, gap=0.0, batch=1, enough=lambda: next(rounds)).reached
    assert next(rounds, None) is None


# -- positions, and checks by a deeper search ------------------------------------------------------------


def _opened(search):
    """Return the search with all that there is opened and evaluated."""
    while closed := [node for node in search.tree.nodes[1:] if not node.opened]:
        search._look_at([node for node in search.tree.nodes[1:] if math.isnan(node.stop)])
        search._open(closed)
    return search


def _search(setting, penalty, evaluator, menu=None, key=str):
    game, player = setting.game, setting.player
    pre = setting.pre[player] if menu is None else menu
    problem = PreparationProblem.checked(game, pre, setting.sigma, penalty, player, str, 1e-12)
    return _opened(BestFirstSearch(problem, evaluator, "optimistic", price_key=key))


@examples(240)
@given(preparations("perfect", repeated=True, menu=True, most=400), st.sampled_from((0.2, 0.02, 1e-3)))
def test_the_best_set_of_what_is_open_against_all_choices(setting, penalty):
    found, search = setting.sets_of_positions(), _search(setting, penalty, setting.play)
    chosen, value, most = search.taken(None)
    assert value == pytest.approx(found.value(penalty), abs=NEAR) and value <= most + 1e-12
    result = search.result(chosen, value, most, True)
    assert result.paid == _positions_of(result) and result.penalty == penalty
    histories = result.histories
    first = [not any(h[:n] in histories for n in range(len(h))) for h in histories]
    net = (result.gain - penalty * result.share).sum()
    assert result.net_gain[np.array(first, bool)].sum() == pytest.approx(net, abs=NEAR)
    for budget in range(4):
        chosen, value, most = search.taken(budget)
        assert value == pytest.approx(found.within(budget), abs=NEAR) and value <= most + 1e-12
        assert _positions_of(search.result(chosen, value, most, False)) <= budget


def _deeper(seed):
    """(a menu, an evaluation) of somebody else, by the position: some of the moves, and other values."""

    def some(state):
        actions = state.legal_actions()
        drawn = [a for a in actions if zlib.crc32(f"{seed} {state} {a}".encode()) % 3]
        return drawn or actions[:1]

    return Menu(some), evaluation(seed + 1000)


@examples(160)
@given(
    preparations("perfect", repeated=True, depth=6, fewest=0),
    st.sampled_from(("infosets", "positions")),
    st.sampled_from((None, 3)),
)
def test_a_set_that_was_looked_at_deeper(setting, price, budget):
    """Each entry is on the deeper menus, and the set's value is by deeper values and the others."""
    pre, (deeper, valued) = Menu.of_actions(), _deeper(setting.seed)
    options = {"pre": pre, "gap": 0.0, "order": "optimistic", "price": price, "budget": budget}
    alone, same, found = (
        _grown(setting, 0.02, position_key=str, check=check, **options)
        for check in (None, (pre, evaluation(setting.seed)), (deeper, valued))
    )
    assert same.lower >= alone.lower - NEAR
    for history, row in zip(found.histories, found.rows, strict=True):
        assert set(row) <= set(deeper.entries(follow(setting.game.new_initial_state(), history)))
    assert budget is None or found.paid <= budget


def test_how_much_is_looked_at_deeper(monkeypatch):
    """Menus of one and a half times the budget are asked for, and each position once."""
    monkeypatch.setattr(best_first, "_FEWEST", 1)
    numbers = []
    for seed in range(3):
        setting, (deeper, valued) = prepared(random_tree(seed, depth=7, width=2), seed), _deeper(seed)
        asked = []

        def noted(state, menu=deeper, asked=asked):
            asked.append(str(state))
            return menu.entries(state)

        options = {"order": "optimistic", "budget": 2, "gap": 0.0, "check": (Menu(noted), valued)}
        _grown(setting, 1e-4, pre=Menu.of_actions(), **options, **_POSITIONS)
        assert len(asked) == len(set(asked)) <= 3
        numbers.append(len(asked))
    assert max(numbers) == 3


@examples(120)
@given(preparations("perfect", repeated=True, depth=6, fewest=0), st.sampled_from((None, str)))
def test_a_corrected_search_is_one_of_what_is_left(setting, key):
    """Its nodes are those of a search with the other menus from the start, and its sums are right."""
    deeper, valued = _deeper(setting.seed)
    batched = SimpleNamespace(evaluate_batch=lambda states: list(map(valued, states)))
    search = _search(setting, 0.02, evaluation(setting.seed), Menu.of_actions(), key)
    for _ in range(6):  # all positions that can be come to, however late they come in
        nodes = {node.place: node for node in search.tree.nodes[1:] if node.place not in search.tree.menus}
        search.correct(list(nodes.values()), [], deeper, evaluator=batched)
        _opened(search)
    other = _search(setting, 0.02, valued, deeper, key)
    for one in (search, other):
        assert [node.index for node in one.tree.nodes] == list(range(len(one.tree.nodes)))
        assert sum(map(len, one._at)) == len(one.tree.nodes) - 1
    reaches = [{node.actions(): node.reach for node in one.tree.nodes} for one in (search, other)]
    assert reaches[0] == pytest.approx(reaches[1])
    assert search.lower == pytest.approx(other.lower, abs=1e-12)
    assert search.taken(2)[1] == pytest.approx(other.taken(2)[1], abs=NEAR)
    values = search.tree.root.values
    search.resum()
    assert search.tree.root.values == pytest.approx(values, abs=1e-12)


def test_wrong_checks_and_keys():
    setting = prepared(random_tree(0, depth=3), 0, menu=3)
    menu = setting.pre[0]
    wrong = [{"check": check} for check in (3, (menu,), (menu, 3), (3, evaluation(0)))]
    for options, name in (
        *((each, "check") for each in wrong),
        ({"price": "positions"}, "position_key with"),
    ):
        with pytest.raises(ValueError, match=rf"best_first_precomputation\(\): expected {name}"):
            _grown(setting, 0.1, **options)
