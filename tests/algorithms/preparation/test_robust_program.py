"""Mixed preparation against nature, by linear programs over all sets that know no tree-form recursion."""

import dataclasses

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import best_response
from scipy.optimize import linprog

from precomp_games.algorithms import best_precomputation, robust_precomputation, robust_strategy
from precomp_games.algorithms.preparation import robust_program
from tests.algorithms.preparation.cases import evaluation, one_sided
from tests.random_games import (
    SUPPORTS,
    expand,
    random_efg,
    random_menu,
    random_policy,
    random_tree,
    sides,
    uniform,
)
from tests.reference import AsPolicy, all_choices, information_state, states

_MOST = 150  # choices
_CASES = 160
_PENALTY = 0.03


class Nature:
    """The program of nature against the player's mixtures of all choices, on OpenSpiel's own states.

    It takes from the tree where nature moves, and where evaluated stops end the game.
    """

    def __init__(self, tree, player, pre, sigma, choices, evaluate=None):
        self.tree, self.player, self.game = tree, player, tree.game
        self.sigma, self.choices, self.evaluate = sigma, choices, evaluate
        self.sequences = [("", -1)]  # (information state, action); the first one is "no reply so far"
        self.turns = {}  # nature's information states: (the sequence before, the model's row)
        self.won = {0: np.zeros(len(choices))}  # what all choices win right after a sequence
        self.walk(self.game.new_initial_state(), 0, np.ones(len(choices)), np.ones(len(choices), bool))

    def walk(self, state, last, reach, memorizing):
        """reach: by each choice and chance. memorizing: which choices have not left the book."""
        if not reach.any():
            return
        history = self.tree.find(state.history())
        if state.is_terminal():
            self.end(last, reach * state.returns()[self.player])
        elif state.is_chance_node():
            for action, p in state.chance_outcomes():
                self.walk(state.child(action), last, reach * p, memorizing)
        elif state.current_player() == self.player:
            name = information_state(self.game, state, self.player)
            rows = [c.get(name) if m else None for c, m in zip(self.choices, memorizing, strict=True)]
            knows = np.array([row is not None for row in rows])
            if self.evaluate is not None:
                value = self.evaluate(state)
                value = value if self.player == 0 else (self.game.utility_sum() or 0.0) - value
                self.end(last, np.where(knows, 0.0, reach) * value)
                reach = np.where(knows, reach, 0.0)
                play = {}
            else:
                play = self.sigma[self.player](state)
            for action in state.legal_actions():
                p = np.array([(play if row is None else row).get(action, 0.0) for row in rows])
                self.walk(state.child(action), last, reach * p, knows)
        else:
            row = self.sigma[1 - self.player](state)
            moves = history >= 0 and self.tree.num_children[history] > 0
            for action, p in row.items():
                if moves:
                    name = information_state(self.game, state, 1 - self.player)
                    self.turns.setdefault(name, (last, row))
                    if (name, action) not in self.sequences:
                        self.sequences.append((name, action))
                    self.walk(state.child(action), self.sequences.index((name, action)), reach, memorizing)
                elif p > 0.0:
                    self.walk(state.child(action), last, reach * p, memorizing)

    def end(self, last, utilities):
        self.won[last] = self.won.get(last, 0.0) + utilities

    def value(self, share, costs, budget=None, pure=False):
        """min over nature's plans of the most that a mixture gets; `pure`: the most that one choice keeps.

        Variables: y of each sequence, v, and the price of the budget.
        """
        count = len(self.sequences)

        def line(*terms):
            columns, factors = zip(*terms, strict=True)
            return np.bincount(columns, factors, count + 2)

        equal, at_most = [line((0, 1.0))], []
        for name, (before, row) in self.turns.items():
            own = [s for s, (other, _) in enumerate(self.sequences) if other == name]
            equal.append(line((before, -1.0), *((s, 1.0) for s in own)))
            for s in own:
                at_most.append(line((before, (1.0 - share) * row[self.sequences[s][1]]), (s, -1.0)))
        wins = np.zeros((len(costs), count + 2))
        wins[:, list(self.won)] = np.column_stack(list(self.won.values()))
        wins[:, -2], wins[:, -1] = -1.0, 0.0 if budget is None else -costs
        paid = costs if budget is None else np.zeros(len(costs))

        def solved(books):
            """v is at least what each of these books gets."""
            found = linprog(
                np.concatenate([np.zeros(count), [1.0, budget or 0.0]]),
                A_ub=np.array([*at_most, *wins[books]]),
                b_ub=np.concatenate([np.zeros(len(at_most)), paid[books]]),
                A_eq=np.array(equal),
                b_eq=np.eye(1, len(equal))[0],
                bounds=[(0.0, None)] * count + [(None, None), (0.0, None)],
                options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
            )
            assert found.status == 0
            return found.fun

        return max(solved([k]) for k in range(len(costs))) if pure else solved(slice(None))


def _case(seed):
    """(tree, player, nature's program, sizes), None where there are too many sets."""
    kind, player = ("tree", "efg", "evaluated", "kuhn")[seed % 4], seed // 4 % 2
    by = "infoset" if kind in ("efg", "kuhn") else "history"
    if kind == "efg":
        game = random_efg(seed, depth=4, actions=2)
    elif kind == "kuhn":
        game = pyspiel.load_game("kuhn_poker")
    else:
        game = random_tree(seed, depth=4, actions=2 + seed % 2, chance=0.2)
    own = random_menu(seed, 2, by) if seed // 8 % 2 else random_policy(seed, SUPPORTS[seed // 16 % 3], by)
    sigma = sides(
        player, random_policy(seed + 1, SUPPORTS[seed // 4 % 3], by), random_policy(seed + 2, by=by)
    )
    choices = all_choices(game, player, own, _MOST)
    if not choices:
        return None
    evaluate = evaluation(seed) if kind == "evaluated" else None
    more = {"leaf_value": evaluate, "stop_value": "evaluate"} if evaluate else {}
    given = sides(player, None, sigma[1 - player]) if evaluate else sigma
    tree = one_sided(game, player, own, given, _PENALTY, truncate="none", **more)
    nature = Nature(tree, player, own, sigma, choices, evaluate)
    return tree, player, nature, np.array([len(choice) for choice in choices], float)


def test_values_are_those_of_all_sets(cases):
    gains, kinds = [], set()
    for seed in range(cases(_CASES)):
        if (case := _case(seed)) is None:
            continue
        tree, player, nature, sizes = case
        kinds.add(seed % 4)
        share = (0.0, 0.1, 0.35, 0.7, 1.0)[seed % 5]
        found = robust_strategy(tree, player, share)
        assert found.value == pytest.approx(nature.value(share, _PENALTY * sizes), abs=1e-9)
        paid = _PENALTY * found.strategy.expected_size
        assert found.value == pytest.approx(found.utility - paid, abs=1e-12)
        assert abs(found.gap) < 1e-9 and found.price == _PENALTY
        if share == 0.0:
            assert found.value == pytest.approx(best_precomputation(tree, player).value, abs=1e-9)
        if seed % 3 == 0:
            budget = 0.4 * float(sizes.max())
            limited = robust_strategy(tree, player, share, budget=budget)
            assert limited.value == pytest.approx(nature.value(share, sizes, budget), abs=1e-9)
            assert limited.value == limited.utility and abs(limited.gap) < 1e-9
            assert limited.strategy.expected_size <= budget + 1e-9
        if len(sizes) <= 30:
            gains.append(found.value - nature.value(share, _PENALTY * sizes, pure=True))
        if tree.infoset_keys is None:
            assert found.value >= robust_precomputation(tree, player, share).value - 1e-9
    assert len(kinds) == 4 and min(gains) > -1e-9 and max(gains) > 1e-4


def test_small_programs_find_what_one_program_does(cases, monkeypatch):
    for seed in range(cases(40)):
        player = seed % 2
        game, sigma = (
            random_tree(seed, depth=6, actions=3),
            (random_policy(seed + 1), random_policy(seed + 2)),
        )
        more = {"leaf_value": evaluation(seed), "stop_value": "evaluate"} if seed % 3 == 0 else {}
        tree = one_sided(game, player, random_menu(seed, 2), sigma, 0.003, **more)
        for budget in (None, 1.5):
            pair = []
            for small in (-1, tree.num_entries):
                monkeypatch.setattr(robust_program, "_SMALL", small)
                pair.append(robust_strategy(tree, player, 0.2, budget=budget))
            assert pair[0].value == pytest.approx(pair[1].value, abs=1e-9)
            assert all(abs(found.gap) < 1e-9 for found in pair)


def test_nature_is_in_the_set_and_the_worst_for_all():
    for seed in (0, 6, 9, 19):
        tree, player, _, _ = _case(seed)
        found = robust_strategy(tree, player, 0.3)
        turns = np.flatnonzero((tree.player == 1 - player) & (tree.num_children > 0))
        for h in turns.tolist():
            q, p = (row[tree.first_child[h] :][: tree.num_children[h]] for row in (found.nature, tree.sigma))
            assert q.sum() == pytest.approx(1.0)
            assert (q >= 0.7 * p - 1e-9).all()
        answer = best_precomputation(dataclasses.replace(tree, sigma=found.nature), player)
        assert answer.value == pytest.approx(found.value, abs=1e-9)


def test_replies_that_the_model_may_have_missed(cases):
    """They have tiny probabilities, so that nature can play them: nature's policy has to keep to them."""
    rare = 0
    for seed in range(cases(32)):
        player = seed % 2
        by = "history" if seed % 3 else "infoset"
        game = (
            random_tree(seed, depth=4, actions=3, chance=0.2)
            if seed % 3
            else random_efg(seed, depth=3, actions=3)
        )
        own, played = random_policy(seed, "partial", by), random_policy(seed + 1, "pure", by)

        def opponent(state, played=played):
            row = {action: max(p, 1e-9) for action, p in played(state).items()}
            return {action: p / sum(row.values()) for action, p in row.items()}

        choices = all_choices(game, player, own, _MOST)
        if not choices:
            continue
        sigma = sides(player, random_policy(seed + 2, by=by), opponent)
        tree = one_sided(game, player, own, sigma, _PENALTY, truncate="none")
        nature = Nature(tree, player, own, sigma, choices)
        found = robust_strategy(tree, player, 0.2)
        sizes = np.array([len(choice) for choice in choices], float)
        assert found.value == pytest.approx(nature.value(0.2, _PENALTY * sizes), abs=1e-8)
        assert abs(found.gap) < 1e-8
        rare += (found.nature[tree.sigma < 1e-6] > 0.1).any()
    assert rare


def test_strategies_are_worth_what_they_say(cases):
    """The policy of a mixture against the program of nature, as the one thing that the player can do."""
    for seed in range(cases(40)):
        if seed % 4 == 2 or (case := _case(seed)) is None:
            continue
        tree, player, nature, _ = case
        found = robust_strategy(tree, player, 0.2)
        policy = found.strategy.policy()
        names = {}
        for state in states(tree.game):
            if state.current_player() == player:
                names.setdefault(information_state(tree.game, state, player), state)
        rows = {name: policy.action_probabilities(state) for name, state in names.items()}
        alone = Nature(tree, player, None, nature.sigma, [rows])
        assert alone.value(0.2, np.zeros(1)) == pytest.approx(found.utility, abs=1e-9)


def test_nature_moves_on_the_whole_game_where_the_opponent_could_memorize_anything():
    """So with contamination 1 the value is a maximin of the base game's, and no less than without a book."""
    game = pyspiel.load_game("kuhn_poker")
    pre, sigma = (random_policy(seed, by="infoset") for seed in (1, 2))
    tree = expand(game, (pre, uniform), sigma, 1e-6, truncate="none")
    found = robust_strategy(tree, 0, 1.0)
    policies = [AsPolicy(game, found.strategy.policy().action_probabilities), AsPolicy(game, sigma)]
    answer = best_response.BestResponsePolicy(game, 1, policies[0])
    assert found.utility == pytest.approx(-answer.value(game.new_initial_state()), abs=1e-9)
    nothing = best_response.BestResponsePolicy(game, 1, policies[1])
    assert found.value >= -nothing.value(game.new_initial_state()) - 1e-9


def test_what_is_refused():
    sigma = random_policy(3, by="infoset")
    kuhn = one_sided(pyspiel.load_game("kuhn_poker"), 0, sigma, (sigma, sigma), truncate="none")
    with pytest.raises(ValueError, match="the same at all histories of an information state"):
        robust_strategy(kuhn, 0, np.linspace(0.0, 1.0, kuhn.num_histories))
