"""Policies and menus that differ between the histories of an information state are refused."""

import collections
import math

import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precomp_games import Menu, MixturePolicy, RolloutValues
from precomp_games.algorithms import best_precomputation
from tests.oracles.books import states
from tests.oracles.games import (
    SEEDS,
    Level,
    expand,
    first,
    games,
    level_game,
    random_menu,
    random_policy,
    setting,
    sides,
    uniform,
)
from tests.oracles.trees import efg
from tests.properties import examples


def coin(*turn):
    """Return a coin of 0.9 that nobody sees, then player 0's one information state, or `turn` before it."""
    lines = ['c "" 1 "" { "heads" 0.9 "tails" 0.1 } 0']
    for k, win in ((1, 1), (2, -5)):
        lines += [*turn, 'p "" 1 1 "" { "stay" "go" } 0', f't "" {2 * k} "" {{ 0 0 }}']
        lines.append(f't "" {2 * k + 1} "" {{ {win} {-win} }}')
    return efg(*lines)


def peeks(state):
    """Return a policy that goes after heads alone, worth 0.9; without looking, 0.4 is the most."""
    return {int(state.history()[0] == 0): 1.0}


def peeking_menu(heads, tails):
    return Menu(lambda state: tails if state.history()[0] else heads)


def of_coin(pre, sigma, penalties=(0.01, math.inf), **more):
    return expand(coin(), (pre, None), (sigma, first), penalties, **more)


_NEVER = {"penalties": math.inf}
_SIGMA = r"sigma\[0\] to be the same"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"pre": peeks},
            r"sigma_pre\[0\] .* got \{1: 1.0\} after 'heads' and \{0: 1.0\} after 'tails', which ",
        ),
        ({"sigma": peeks}, rf"{_SIGMA} at all histories of an information state, got \{{1: 1.0\}}"),
        ({"sigma": peeks} | _NEVER, f"{_SIGMA} .* player 0 cannot tell apart"),
        ({"sigma": peeks, "leaf_value": RolloutValues(games=100)} | _NEVER, _SIGMA),
        ({"sigma": MixturePolicy([first, peeks])} | _NEVER, "component 1 of the mixture to be the same"),
        (
            {"pre": peeking_menu([0, 1], [1, 0])},
            r"sigma_pre\[0\] .* got \[\{0: 1.0\}, \{1: 1.0\}\] after 'heads'",
        ),
        ({"pre": peeking_menu([0, 1], [1])}, r"sigma_pre\[0\] to be the same"),
        ({"pre": peeking_menu([0], [])}, r".* got \{0: 1.0\} after 'heads' and \[\] after 'tails'"),
        ({"pre": peeking_menu([{0: 0.5, 1: 0.5}], [{0: 0.4, 1: 0.6}])}, r".* got \{0: 0.5, 1: 0.5\} after"),
    ],
)
def test_what_looks_at_the_coin(given, words):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected " + words):
        of_coin(**{"pre": uniform, "sigma": uniform} | given)


def test_the_best_that_can_be_played():
    assert best_precomputation(of_coin(Menu.of_actions(), first), 0).utility == pytest.approx(0.4)


def test_what_a_fixed_opponent_plays():
    """The other player's turns are compared too, in the tree and below it, and those of components."""
    opponent = coin('p "" 2 1 "" { "x" "y" } 0', 't "" 9 "" { 0 0 }')
    for sigma in (peeks, MixturePolicy([uniform, peeks])):
        for penalties in ((0.01, math.inf), math.inf):
            with pytest.raises(ValueError, match=r"(sigma\[1\]|component 1 of the mixture) to be the same"):
                expand(opponent, (first, None), (first, sigma), penalties)


def test_rounding_is_no_difference():
    def noisy(state, noise):
        odds = 0.3 + noise * state.history()[0]
        return {0: odds, 1: 1.0 - odds}

    def rare(state, noise):  # which min_probability cuts after one outcome, and not after the other
        odds = noise * (1.0 + state.history()[0])
        return {0: odds, 1: 1.0 - odds}

    for policy in (noisy, rare):
        alike = of_coin(lambda state, p=policy: p(state, 1e-8), uniform, min_probability=1.5e-8)
        assert alike.num_infosets == 1
        with pytest.raises(ValueError, match="to be the same"):
            of_coin(lambda state, p=policy: p(state, 1e-5), uniform)


def test_one_history_that_differs_is_found():
    """Anywhere in a game, in any policy; what depends on information states is accepted, mixtures too."""
    lengths = []
    hidden = (True, True)
    uneven = level_game(0, [Level(-1, hidden=hidden), Level(1, hidden=hidden, late=True), Level(0)])

    @examples(240)
    @given(st.builds(setting, games("imperfect", 5, 2, least=3), SEEDS), SEEDS, st.integers(0, 1))
    @example(setting(uneven, 0), 0, 0)
    def holds(case, seed, which):
        game, *policies = case
        expand(*case, 1e-9, truncate="none")
        mixed = MixturePolicy([*policies[1], random_policy(seed, "partial", "infoset")])
        expand(game, random_menu(seed, by="infoset"), (policies[1][0], mixed), (1e-9, math.inf))
        found = collections.defaultdict(list)  # where players move, by information state
        for state in states(game):
            if state.current_player() >= 0:
                found[state.current_player(), state.information_state_string()].append(state)
        for (player, _), alike in found.items():
            if len(alike) > 1:
                odd, honest = alike[seed % len(alike)].history_str(), policies[which][player]

                def peeks(state, odd=odd, honest=honest):
                    return uniform(state) if state.history_str() == odd else honest(state)

                given = list(policies)
                given[which] = sides(player, peeks, policies[which][1 - player])
                with pytest.raises(ValueError, match=rf"\[{player}\] to be the same at all histories"):
                    expand(game, *given, 1e-9, truncate="none")
                lengths.append({len(state.history()) for state in alike})

    holds()
    assert any(len(each) > 1 for each in lengths)


def test_what_an_entry_hardly_ever_plays_may_be_missing():
    game = pyspiel.load_game("leduc_poker")

    def entries(state, epsilon):
        one, two, *rest = state.legal_actions()
        odd = {rest[0]: epsilon} if rest and sum(state.history()) % 2 else {}
        return [{one: 1.0}, {two: 1.0 - sum(odd.values())} | odd]

    def tree(epsilon):
        return expand(game, (Menu(lambda state: entries(state, epsilon)), None), uniform, (0.01, math.inf))

    assert tree(1e-8).num_histories > 1000
    with pytest.raises(ValueError, match="cannot tell apart"):
        tree(0.1)
