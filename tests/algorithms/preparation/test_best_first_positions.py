"""Trees that grow best first with prices of positions, and checks by a deeper search."""

import itertools
import math
import zlib

import pytest

from precomp_games import Menu
from precomp_games.algorithms import best_first_precomputation, best_precomputation
from precomp_games.algorithms.preparation import best_first
from precomp_games.algorithms.preparation.evaluated_search import BestFirstSearch
from precomp_games.algorithms.preparation.partial_tree import PreparationProblem
from tests.algorithms.preparation.test_position_prices import same_choice_at_a_position
from tests.oracles import books
from tests.oracles.games import policy_pairs, random_menu, random_tree
from tests.oracles.preparation import evaluation, one_sided


def _case(seed, depth=3):
    """Return (game, menu, sigma, player) in which several histories lead to a position."""
    game = random_tree(seed, depth=depth + seed % 2, actions=3, width=2, chance=0.1)
    menu, sigma = random_menu(seed, by="position"), policy_pairs(seed, "full", "position")[1]
    return game, menu, sigma, (seed // 2) % 2


def _opened(search):
    """Return the search with all that there is opened and evaluated."""
    while True:
        nodes = search.tree.nodes[1:]
        unknown = [node for node in nodes if math.isnan(node.stop)]
        closed = [node for node in nodes if not node.opened]
        if not closed:
            return search
        search._look_at(unknown)
        search._open(closed)


def _paid(found):
    """Return the number of positions that a result pays for, and check that each has one entry."""
    rows = {}
    for history, row in zip(found.histories, found.rows, strict=True):
        state = found.game.new_initial_state()
        for action in history:
            state.apply_action(action)
        assert rows.setdefault(str(state), row) == row
    return len(rows)


def test_the_best_set_of_what_is_open_against_all_choices(cases):
    given = 0
    for seed in itertools.count():
        if given == cases(30):
            break
        game, menu, sigma, player = _case(seed)
        choices = books.all_choices(game, player, menu, 400)
        position_of = books.positions(game, player)
        counts = [same_choice_at_a_position(chosen, position_of) for chosen in choices]
        if len(choices) < 10 or None not in counts:
            continue
        given += 1
        utilities = books.own_utilities_of_choices(game, player, choices, sigma).tolist()
        found = [pair for pair in zip(counts, utilities, strict=True) if pair[0] is not None]

        def played_on(state, sigma=sigma):
            return books.play_value(state, sigma)

        for penalty in (0.2, 0.02, 1e-3):
            problem = PreparationProblem.checked(game, menu, sigma, penalty, player, str, 1e-12)
            search = _opened(BestFirstSearch(problem, played_on, "optimistic", price_key=str))
            chosen, value, most = search.taken(None)
            best = max(utility - penalty * count for count, utility in found)
            assert value == pytest.approx(best, abs=1e-9) and value <= most + 1e-12
            result = search.result(chosen, value, most, True)
            assert result.paid == _paid(result) and result.penalty == penalty
            first = {
                k
                for k in range(result.size)
                if not any(
                    result.histories[k][:n] in result.histories for n in range(len(result.histories[k]))
                )
            }
            assert result.net_gain[list(first)].sum() == pytest.approx(
                (result.gain - penalty * result.share).sum(), abs=1e-9
            )
        for budget in range(4):
            chosen, value, most = search.taken(budget)
            expected = max(utility for count, utility in found if count <= budget)
            assert value == pytest.approx(expected, abs=1e-9) and value <= most + 1e-12
            assert _paid(search.result(chosen, value, most, False)) <= budget


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_what_is_found_against_the_whole_tree(order, cases):
    """The value is as reported, at most that of the best set of the whole tree, and mostly near it."""
    shared = reached = told = 0
    for seed in range(cases(60)):
        game, menu, sigma, player = _case(seed, 5)
        values, penalty = evaluation(seed), (0.02, 0.1)[seed % 2]
        tree = one_sided(
            game, player, menu, sigma, penalty, truncate="none", position_key=str, leaf_value=values,
            stop_value="evaluate",
        )  # fmt: skip
        for budget in (None, 2):
            best = best_precomputation(tree, player, price="positions", budget=budget)
            found = best_first_precomputation(
                game, menu, sigma, penalty, player, values, gap=0.0, order=order, price="positions",
                budget=budget, position_key=str, batch=3,
            )  # fmt: skip
            assert found.paid == _paid(found) and (budget is None or found.paid <= budget)
            assert found.lower <= best.value + 1e-9 and best.value <= found.upper + 1e-9
            # What has not been evaluated counts as little as possible.
            worth = best.unprepared + found.gain.sum() - found.penalty * found.paid
            assert found.lower - 1e-9 <= worth <= best.value + 1e-9
            shared += found.paid < found.size
            told += 1
            reached += found.lower > best.value - 1e-9
    assert shared > cases(6) and reached > (0.8 if order == "certified" else 0.5) * told


def test_positions_need_a_key():
    game, menu, sigma, player = _case(0)
    with pytest.raises(ValueError, match=r"best_first_precomputation\(\): expected position_key with price"):
        best_first_precomputation(game, menu, sigma, 0.1, player, evaluation(0), price="positions")


def _deeper(seed):
    """(a menu, an evaluation) of somebody else, by the position: some of the moves, and other values."""

    def some(state):
        actions = state.legal_actions()
        drawn = [a for a in actions if zlib.crc32(f"{seed} {state} {a}".encode()) % 3]
        return drawn or actions[:1]

    return Menu(some), evaluation(seed + 1000)


@pytest.mark.parametrize("price", ["infosets", "positions"])
def test_a_set_that_was_looked_at_deeper(price, cases):
    """Each entry is on the deeper menus, and the set's value is by deeper values and the others."""
    changed = 0
    for seed in range(cases(20)):
        game, _, sigma, player = _case(seed, 5)
        pre, values = Menu.of_actions(), evaluation(seed)
        deeper, valued = _deeper(seed)
        for budget in (None, 3):
            options = {
                "gap": 0.0,
                "order": "optimistic",
                "price": price,
                "position_key": str,
                "budget": budget,
            }
            alone = best_first_precomputation(game, pre, sigma, 0.02, player, values, **options)
            same = best_first_precomputation(
                game, pre, sigma, 0.02, player, values, check=(pre, values), **options
            )
            assert same.lower >= alone.lower - 1e-9
            found = best_first_precomputation(
                game, pre, sigma, 0.02, player, values, check=(deeper, valued), **options
            )
            for history, row in zip(found.histories, found.rows, strict=True):
                state = game.new_initial_state()
                for action in history:
                    state.apply_action(action)
                assert set(row) <= set(deeper.entries(state))
            assert budget is None or found.paid <= budget
            changed += found.rows != alone.rows
    assert changed > cases(10)


def test_how_much_is_looked_at_deeper(cases, monkeypatch):
    """Menus of one and a half times the budget are asked for, and each position once."""
    monkeypatch.setattr(best_first, "_FEWEST", 1)
    asked, most = [], 0
    for seed in range(cases(8)):
        game, _, sigma, player = _case(seed, 7)
        asked.clear()
        deeper, valued = _deeper(seed)

        def told(state, deeper=deeper):
            asked.append(str(state))
            return deeper.entries(state)

        pre = Menu.of_actions()
        options = {"order": "optimistic", "price": "positions", "position_key": str, "budget": 2, "gap": 0.0}
        best_first_precomputation(
            game, pre, sigma, 1e-4, player, evaluation(seed), check=(Menu(told), valued), **options
        )
        assert len(asked) == len(set(asked)) <= 3
        most = max(most, len(asked))
    assert most == 3


@pytest.mark.parametrize("key", [None, str])
def test_a_corrected_search_is_one_of_what_is_left(key, cases):
    """Its nodes are those of a search with the other menus from the start, and its sums are right."""
    for seed in range(cases(24)):
        game, _, sigma, player = _case(seed, 5)
        deeper, valued = _deeper(seed)

        def search_by(menu, values, game=game, sigma=sigma, player=player):
            problem = PreparationProblem.checked(game, menu, sigma, 0.02, player, str, 1e-12)
            return _opened(BestFirstSearch(problem, values, "optimistic", price_key=key))

        search = search_by(Menu.of_actions(), evaluation(seed))
        for _ in range(6):  # all positions that can be come to, however late they come in
            nodes = {
                node.place: node for node in search.tree.nodes[1:] if node.place not in search.tree.menus
            }
            search.correct(list(nodes.values()), [], deeper, evaluator=_Batch(valued))
            _opened(search)
        other = search_by(deeper, valued)
        for one in (search, other):
            assert [node.index for node in one.tree.nodes] == list(range(len(one.tree.nodes)))
            assert sum(map(len, one._at)) == len(one.tree.nodes) - 1
        reaches = [{node.actions(): node.reach for node in one.tree.nodes} for one in (search, other)]
        assert reaches[0] == pytest.approx(reaches[1])
        assert search.lower == pytest.approx(other.lower, abs=1e-12)
        assert search.taken(2)[1] == pytest.approx(other.taken(2)[1], abs=1e-9)
        values = search.tree.root.values
        search.resum()
        assert search.tree.root.values == pytest.approx(values, abs=1e-12)


class _Batch:
    """An evaluator that answers many."""

    def __init__(self, function):
        self.evaluate_batch = lambda states: [function(state) for state in states]


def test_wrong_checks():
    game, menu, sigma, player = _case(0)
    for wrong in (3, (menu,), (menu, 3), (3, evaluation(0))):
        with pytest.raises(ValueError, match=r"best_first_precomputation\(\): expected check"):
            best_first_precomputation(game, menu, sigma, 0.1, player, evaluation(0), check=wrong)
