"""Games that are not what they say of themselves: one line says what is wrong, wherever they are walked."""

import math

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, RolloutValues, to_efg
from precomp_games._support.game_facts import GameFacts, information_state
from precomp_games.algorithms import (
    best_first_precomputation,
    best_precomputation,
    best_response,
    efce,
    lookahead,
    nash_conv,
    search,
    solve,
)
from tests.oracles.games import EfgText, first, uniform

_KIND = pyspiel.GameType
_PERFECT = _KIND.Information.PERFECT_INFORMATION


class _OddGame(pyspiel.Game):
    """Player 0 moves, then chance, then player 1, who sees chance alone; `odd` has what is otherwise."""

    def __init__(self, **odd):
        self.odd = odd
        kind = _KIND(
            short_name="python_odd",
            long_name="Odd",
            dynamics=_KIND.Dynamics.SEQUENTIAL,
            chance_mode=odd.get("chance_mode", _KIND.ChanceMode.EXPLICIT_STOCHASTIC),
            information=odd.get("information", _KIND.Information.IMPERFECT_INFORMATION),
            utility=odd.get("utility", _KIND.Utility.ZERO_SUM),
            reward_model=_KIND.RewardModel.TERMINAL,
            max_num_players=2,
            min_num_players=2,
            provides_information_state_string=True,
            provides_information_state_tensor=False,
            provides_observation_string=False,
            provides_observation_tensor=False,
            parameter_specification={},
        )
        low, high = odd.get("range", (-2.0, 2.0))
        super().__init__(kind, pyspiel.GameInfo(2, 2, 2, low, high, 0.0, 3), {})

    def new_initial_state(self):
        return (_Nameless if "nameless" in self.odd else _OddState)(self)


class _Nameless(pyspiel.State):
    def __init__(self, game):
        super().__init__(game)
        self.odd, self.path = game.odd, tuple[int, ...]()

    def _said(self, name, usual):
        return self.odd[name](self.path) if name in self.odd else usual

    def current_player(self):
        return self._said("mover", (0, -1, 1, -4)[len(self.path)])

    def is_terminal(self):
        return len(self.path) == 3

    def _legal_actions(self, player):
        return self._said("legal", [0, 1])

    def legal_actions(self, player=None):
        player = self.current_player()
        if player == -1:
            return [action for action, _ in self.chance_outcomes()]
        return self._legal_actions(player) if player >= 0 else []

    def chance_outcomes(self):
        return self._said("chance", [(0, 0.5), (1, 0.5)])

    def _apply_action(self, action):
        self.path += (action,)

    def returns(self):
        own = sum(
            worth if action else -worth / 2 for worth, action in zip((1, -1, 0.5), self.path, strict=False)
        )
        return self._said("returns", [own, -own])

    def _action_to_string(self, player, action):
        return str(action)

    def __str__(self):
        return str(self.path)


class _OddState(_Nameless):
    def information_state_string(self, player=None):
        player = self.current_player() if player is None else player
        return self._said("name", f"{player} {self.path[1:] if player else ()}")


def _prepared(game, penalty=0.01, **how):
    return HistoryTree.from_game(game, sigma_pre=first, sigma=uniform, penalties=(penalty, math.inf), **how)


def _zero(state):
    return 0.0


TREES = {
    "solve": lambda game: solve(game).value,
    "nash_conv": lambda game: nash_conv(game, uniform),
    "best_response": lambda game: best_response(game, uniform, 1).value,
    "to_efg": to_efg,
    "from_game": lambda game: best_precomputation(_prepared(game), 0).value,
    "exact": lambda game: best_precomputation(_prepared(game, 0.4), 0).value,
    "rollouts": lambda game: best_precomputation(_prepared(game, 0.4, leaf_value=RolloutValues(games=99)), 0),
}
FORMS = {
    "commit_against_lookahead": lambda game: lookahead.commit_against_lookahead(game, 0, 1, _zero),
    "equilibrium_values": lambda game: lookahead.equilibrium_values(game, 0),
    "efce_lp": lambda game: efce.efce_lp(game),
}
LOOKS = {"evaluate": lambda game: lookahead.evaluate_against_lookahead(game, uniform, 0, 3, _zero)}
SEARCHES = {
    "minimax": lambda game: search.minimax(game.new_initial_state(), search.SearchBudget(depth=5)),
    "mcts": lambda game: search.mcts(game.new_initial_state(), search.SimulationBudget(50)),
}
BOUNDED = {"best_first": lambda game: best_first_precomputation(game, first, uniform, 0.01, 0, _zero)}
WALKS = TREES | FORMS | LOOKS
ALL = WALKS | SEARCHES


def _last(returns):
    """Return returns of which one leaf has these."""
    return lambda path: returns if path == (0, 0, 1) else [0.0, 0.0]


ODD = {
    # what the library once took as it came
    "a leaf beyond the range": (
        ALL,
        {"range": (-2.0, 0.4)},
        r"expected utilities from -2 to 0\.4, as the game says",
    ),
    "a leaf below the range": (
        ALL,
        {"range": (-0.4, 2.0)},
        r"expected utilities from -0\.4 to 2, as the game",
    ),
    "one utility is NaN": (
        ALL | BOUNDED,
        {"returns": _last([math.nan, math.nan])},
        "expected utilities from -2 to 2, .* got nan and nan at history '0, 0, 1'",
    ),
    "chance sums to 0.8": (
        ALL | BOUNDED,
        {"chance": lambda path: [(0, 0.5), (1, 0.3)]},
        r"expected the probabilities of chance to sum to 1 at history '\d', got 0\.8",
    ),
    "actions twice": (
        ALL | BOUNDED,
        {"legal": lambda path: [0, 0]},
        r"expected the actions of a state to differ",
    ),
    "outcomes twice": (
        ALL | BOUNDED,
        {"chance": lambda path: [(1, 0.5), (1, 0.5)]},
        r"expected the actions of a state to differ, got \[1, 1\] at history '\d'",
    ),
    "actions beyond": (
        WALKS,
        {"legal": lambda path: [0, 5]},
        r"expected actions from 0 to 1, as num_distinct_actions says, got \[0, 5\] at ",
    ),
    "no information states": (
        WALKS,
        {"nameless": None},
        r"expected information state strings, as the game says, got ",
    ),
    # more of the kind
    "actions below": (
        WALKS,
        {"legal": lambda path: [-2, 0]},
        r"expected actions from 0 to 1, .* got \[-2, 0\]",
    ),
    "an infinite utility": (
        ALL,
        {"returns": _last([math.inf, -math.inf])},
        "expected utilities from -2 to 2",
    ),
    "no constant sum": (
        ALL,
        {"returns": _last([1.0, 1.0])},
        r"expected utilities that add up to 0, .* got 1\.0 and 1\.0",
    ),
    "three utilities": (
        ALL,
        {"returns": _last([1.0, -1.0, 0.0])},
        r"expected two utilities, got \[1.0, -1.0, 0.0\] at",
    ),
    "one utility": (
        ALL,
        {"returns": _last([1.0])},
        r"expected two utilities, got \[1.0\] at history '0, 0, 1'",
    ),
    "utilities are texts": (
        ALL,
        {"returns": _last(["1", "-1"])},
        r"expected two utilities, got \['1', '-1'\] at",
    ),
    "no utilities": (ALL, {"returns": _last(None)}, r"expected two utilities, got None at history '0, 0, 1'"),
    "a negative probability": (
        ALL | BOUNDED,
        {"chance": lambda path: [(0, 1.5), (1, -0.5)]},
        r"expected chance to give probabilities in \[0, 1\] at history '\d', got ",
    ),
    "a probability is NaN": (
        ALL | BOUNDED,
        {"chance": lambda path: [(0, 0.5), (1, math.nan)]},
        r"expected chance to give probabilities in \[0, 1\] at history '\d', got ",
    ),
    "no outcomes": (
        ALL | BOUNDED,
        {"chance": lambda path: []},
        r"expected (a legal action|the probabilities of chance to sum to 1)\b.* at history '\d'",
    ),
    "no legal action": (
        {name: WALKS[name] for name in ("solve", "to_efg", *FORMS)} | SEARCHES,
        {"legal": lambda path: [0, 1] if len(path) < 2 else []},
        r"expected a legal action, got none at history '0, \d' of 'python_odd\(\)'",
    ),
    "a third player": (
        ALL | BOUNDED,
        {"mover": lambda path: (0, -1, 2, -4)[len(path)]},
        r"expected player 0 or 1 to move, or chance, got 2 at history '\d, \d'",
    ),
    "players who move at once": (
        ALL | BOUNDED,
        {"mover": lambda path: (0, -1, -2, -4)[len(path)]},
        r"expected player 0 or 1 to move, or chance, got -2 at history '\d, \d'",
    ),
    "chance in a game without it": (
        ALL | BOUNDED,
        {"chance_mode": _KIND.ChanceMode.DETERMINISTIC},
        r"expected no chance, as the game says, got chance at history '\d' of 'python_odd\(\)'",
    ),
    "a range without end": (
        TREES | BOUNDED,
        {"range": (-2.0, math.inf)},
        r"expected a finite range .* -2\.0 to inf of",
    ),
    "a range upside down": (
        ALL | BOUNDED,
        {"range": (2.0, -2.0)},
        r"expected a (finite )?range of utilities, got one from",
    ),
    "information states without names": (
        WALKS,
        {"name": lambda path: None},
        r"expected information state strings, as the game says, got None at history ''",
    ),
    "actions that a player cannot know": (
        {name: WALKS[name] for name in ("solve", "nash_conv", "best_response", "to_efg", *FORMS)},
        {"legal": lambda path: [0, 1] if path[:1] != (1,) else [0]},
        r"expected one set of legal actions at '1 \(0,\)'.*, got \[0, 1\] and \[0\]",
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_one_line_says_what_is_wrong(what):
    walks, odd, words = ODD[what]
    for name, walk in walks.items():
        if name in SEARCHES | BOUNDED:
            odd = {"name": str, "information": _PERFECT} | odd
        with pytest.raises(ValueError, match=words) as refused:
            walk(_OddGame(**odd))
        assert "\n" not in str(refused.value) and "(): expected" in str(refused.value), name


def test_the_same_game_is_fine_without():
    for name, walk in (ALL | BOUNDED).items():
        walk(_OddGame(**({"name": str, "information": _PERFECT} if name in SEARCHES | BOUNDED else {})))


def test_general_sums_may_add_up_to_anything():
    odd = {"returns": _last([2.0, 1.5]), "utility": _KIND.Utility.GENERAL_SUM}
    assert efce.efce_lp(_OddGame(**odd)).welfare > 0.0
    assert best_response(_OddGame(**odd), uniform, 1).value > 0.0
    with pytest.raises(ValueError, match="expected utilities from -2 to 1"):
        efce.efce_lp(_OddGame(range=(-2.0, 1.0), **odd))


@pytest.mark.parametrize("walk", ["solve", "nash_conv", "best_response", "to_efg"])
def test_a_game_that_hides_what_it_says_that_all_know(walk):
    with pytest.raises(
        ValueError, match=r"expected a game of perfect information, as it says, got .* calls .* alike"
    ):
        WALKS[walk](_OddGame(information=_PERFECT))
    WALKS[walk](_OddGame(information=_PERFECT, name=str))


def test_states_below_leaves_are_looked_at_too():
    """The sums of u^sigma go where the tree does not."""
    for names in ({"name": lambda path: f"{len(path)}"}, {}):
        with pytest.raises(ValueError, match="expected a game of perfect information, as it says"):
            _prepared(_OddGame(information=_PERFECT, **names), 100.0)


def test_boards_that_several_lines_reach_are_one_state():
    """Names may be those of positions: what is not hidden may be forgotten."""
    names = {"name": lambda path: f"{sum(path)}"}

    class Board(_OddState):
        def __str__(self):
            return f"{len(self.path)} {sum(self.path)}"

    class OnBoard(_OddGame):
        def new_initial_state(self):
            return Board(self)

    assert solve(OnBoard(information=_PERFECT, **names)).nash_conv == pytest.approx(0.0)


@pytest.mark.parametrize("labels", [("", ""), ("same", "same")])
@pytest.mark.parametrize("player", [0, 1, 2])
def test_labels_of_gambits_files(labels, player):
    """`solve` once certified what one of the two actions gives, by halves that were counted twice."""
    text = EfgText()
    if player:
        text.move(player, 1, labels)
    else:
        text.lines.append('c "" 1 "" {{ "{}" 0.5 "{}" 0.5 }} 0'.format(*labels))
    for utility in (1, -1):
        text.leaf(utility)
    for walk in TREES.values() if player else (TREES["solve"], TREES["to_efg"], *FORMS.values()):
        with pytest.raises(ValueError, match="label the actions of each node differently"):
            walk(text.game())


def test_many_states_are_looked_at_here_and_there():
    """Of a level of thousands, neighbors and some all over."""
    game = pyspiel.load_game("tic_tac_toe")
    state, asked = game.new_initial_state(), []

    class Seen:
        def __init__(self, number):
            self.number = number

        def current_player(self):
            return 0

        def information_state_string(self, player=None):
            asked.append(self.number)
            return str(self.number)

    facts = GameFacts(game)
    facts.check_names([Seen(k) for k in range(10_000)], np.zeros(10_000, np.int8))
    assert asked[:32] == list(range(32)) and 32 < len(asked) <= 65 and asked[-1] > 9_600
    assert information_state(state) == ""
