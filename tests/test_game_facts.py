"""Games wherever they are taken: by name, as files, and those that are not what they say of themselves."""

import math
import types

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, Menu, RolloutValues, algorithms, to_efg
from precomp_games._support.game_facts import GameFacts, information_state
from precomp_games.algorithms import best_precomputation, best_response, efce, lookahead, search, solve
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.games import first, last, tree_type, uniform
from tests.oracles.trees import efg

_KIND = pyspiel.GameType
_PERFECT = _KIND.Information.PERFECT_INFORMATION


class _OddGame(pyspiel.Game):
    """Player 0 moves, then chance, then player 1, who sees chance alone; `odd` has what is otherwise."""

    def __init__(self, **odd):
        self.odd = odd
        kind = tree_type(
            "python_odd",
            odd.get("chance_mode", _KIND.ChanceMode.EXPLICIT_STOCHASTIC),
            {},
            information=odd.get("information", _KIND.Information.IMPERFECT_INFORMATION),
            utility=odd.get("utility", _KIND.Utility.ZERO_SUM),
            provides_information_state_string=True,
        )
        low, high = odd.get("range", (-2.0, 2.0))
        super().__init__(kind, pyspiel.GameInfo(2, 2, 2, low, high, 0.0, 3), {})

    def new_initial_state(self):
        return _OddState(self)


class _OddState(pyspiel.State):
    def __init__(self, game):
        super().__init__(game)
        self.odd, self.path = game.odd, tuple[int, ...]()

    def _or_odd(self, name, usual):
        return self.odd[name](self.path) if name in self.odd else usual

    def current_player(self):
        return self._or_odd("mover", (0, -1, 1, -4)[len(self.path)])

    def is_terminal(self):
        return len(self.path) == 3

    def _legal_actions(self, player):
        return self._or_odd("legal", [0, 1])

    def chance_outcomes(self):
        return self._or_odd("chance", [(0, 0.5), (1, 0.5)])

    def _apply_action(self, action):
        self.path += (action,)

    def returns(self):
        own = sum(w if a else -w / 2 for w, a in zip((1, -1, 0.5), self.path, strict=False))
        return self._or_odd("returns", [own, -own])

    def information_state_string(self, player=None):
        if "nameless" in self.odd:
            return super().information_state_string(player)
        player = self.current_player() if player is None else player
        return self._or_odd("name", f"{player} {self.path[1:] if player else ()}")

    def _action_to_string(self, player, action):
        return str(action)

    def __str__(self):
        return self._or_odd("text", str(self.path))


def _prepared(game, penalties=0.01, sigma_pre=first, **how):
    tree = HistoryTree.from_game(game, sigma_pre=sigma_pre, sigma=uniform, penalties=penalties, **how)
    return best_precomputation(tree, 0).value


def _search(name):
    budget = search.SimulationBudget(50) if name == "mcts" else search.SearchBudget(depth=5)

    def walk(game):
        state = game.new_initial_state()
        return getattr(search, name)(state.child(1) if state.is_chance_node() else state, budget)

    return walk


def _zero(state):
    return 0.0


TREES = {
    "solve": lambda game: solve(game).value,
    "refined": lambda game: solve(game, refine=True),
    "cfr": lambda game: solve(game, method="cfr+", iterations=1),
    "nash_conv": lambda game: algorithms.nash_conv(game, uniform),
    "best_response": lambda game: best_response(game, uniform, 1).value,
    "to_efg": to_efg,
    "of_game": lambda game: HistoryTree.of_game(game).num_histories,
    "from_game": _prepared,
    "menus": lambda game: _prepared(game, sigma_pre=Menu.of_actions()),
    "exact": lambda game: _prepared(game, 0.4),
    "rollouts": lambda game: _prepared(game, 0.4, leaf_value=RolloutValues(games=99)),
}
FORMS = {
    "commit": lambda game: lookahead.commit_against_lookahead(game, 0, 1, _zero).supremum,
    "equilibrium_values": lambda game: lookahead.equilibrium_values(game, 0),
    "SequenceGame": lambda game: efce.SequenceGame.of(game).num_nodes,
    "efce_lp": lambda game: efce.efce_lp(game).welfare,
}
LOOKS = {"evaluate": lambda game: lookahead.evaluate_against_lookahead(game, uniform, 0, 3, _zero)}
SEARCHES = {name: _search(name) for name in ("minimax", "alpha_beta", "principal_variation_search", "mcts")}
BOUNDED = {
    "best_first": lambda game: algorithms.best_first_precomputation(game, first, uniform, 0.01, 0, _zero)
}
WALKS = TREES | FORMS | LOOKS
SEARCHED = WALKS | SEARCHES
ALL = SEARCHED | BOUNDED
NUMBERS = ("solve", "nash_conv", "best_response", "to_efg", "of_game", "from_game")


@pytest.mark.parametrize("walk", [*NUMBERS, "commit", "SequenceGame", "efce_lp"])
def test_a_game_is_itself_or_its_name_in_turns_or_a_gambit_files_path(walk, tmp_path):
    call, name = WALKS[walk], "goofspiel(num_cards=3,imp_info=True)"
    assert call(name) == call(pyspiel.load_game(name)) == call(pyspiel.load_game_as_turn_based(name))
    path, text = tmp_path / "a game, 1=(2).efg", to_efg(name)
    path.write_text(text)
    assert call(path) == call(str(path)) == call(pyspiel.load_game("efg_game", {"filename": str(path)}))
    no_name, none = (
        r"an OpenSpiel game .* \(did you mean kuhn_poker\?\)",
        r"an \.efg file, got .*, where there",
    )
    for given, words in (("kuhn_pokr", no_name), (tmp_path / "none.efg", none)):
        with pytest.raises(ValueError, match=rf"^\w.*\(\): expected {words}"):
            call(given)
    for data in ("", "EFG 2 R", text[:300], "\0" * 50, text.replace(" -1.0 }", " }")):
        path.write_text(data)
        with pytest.raises(ValueError, match=r"\(\): expected a game that OpenSpiel reads, got '.*\.efg' \("):
            call(path)


@pytest.mark.parametrize(
    "options", [{}, {"truncate": "none"}, {"truncate": "values", "leaf_value": lambda s: 0.0}]
)
def test_where_payoffs_are_all_equal_nothing_is_worth_memorizing_and_nothing_refused(options):
    ends = [f't "" {k} "" {{ 0 0 }}' for k in range(1, 5)]
    second = [f'p "" 2 {k} "" {{ "a" "b" }} 0' for k in (1, 2)]
    game = efg('p "" 1 1 "" { "a" "b" } 0', second[0], *ends[:2], second[1], *ends[2:])
    assert game.min_utility() == game.max_utility()
    given = {"sigma_pre": last, "sigma": first, **options}
    for penalties in (0.1, (0.1, math.inf)):
        tree = HistoryTree.from_game(game, penalties=penalties, **given)
        tree.check()
        assert tree.utility_range == 0.0
        best = best_precomputation(tree, 0, budget=1)
        assert (best.utility, best.truncation_loss) == (0.0, 0.0) and best_precomputation(tree, 0).size == 0
        for solver in (meta_sequence_form_lp, algorithms.meta_equilibrium):
            assert solver(tree).sizes == (0.0, 0.0)
        assert algorithms.EntropyBounds(tree, 0).best_bound(0.1).utility == 0.0
    free = HistoryTree.from_game(game, penalties=(0.1, math.inf), weight=lambda state: 0.0, **given)
    assert free.num_infosets == 1  # what costs nothing stays
    assert algorithms.best_first_precomputation(game, last, first, 0.1, 0, lambda s: 0.0).upper == 0.0
    assert algorithms.certified_precomputation(game, last, first, 0.1, 0).size == 0


# -- what is wrong with a game ------------------------------------------------------------------------


def _last(*returns):
    """Return returns of which one leaf has these."""
    return {"returns": lambda path: list(returns) if path == (0, 0, 1) else [0.0, 0.0]}


def _always(name, answer):
    return {name: lambda path: answer}


def _mover(third):
    return {"mover": lambda path: (0, -1, third, -4)[len(path)]}


def _some(*names):
    return {name: WALKS[name] for name in names}


_RANGE, _PAIR = "expected utilities from -2 to 2, as the game says", r"expected two utilities, got "
_SHARE = r"expected chance to give probabilities in \[0, 1\] at history '\d', got "
_TURN = "expected player 0 or 1 to move, or chance, got "
_NAMES = "expected information state strings, as the game says, got "
_DIFFER = "expected the actions of a state to differ"
_ACTIONS = "expected actions from 0 to 1, as num_distinct_actions says, got "
_NONE = r"expected (a legal action|the probabilities of chance to sum to 1)\b.* at history '\d'"
_SUM = r"expected the probabilities of chance to sum to 1 at history '\d', got 0\.8"
_NO_CHANCE = r"expected no chance, as the game says, got chance at history '\d' of 'python_odd\(\)'"
_STUCK = {"legal": lambda path: [0, 1] if len(path) < 2 else []}
_KNOWN = {"legal": lambda path: [0, 1] if path[:1] != (1,) else [0]}  # by who does not see what was done
_ONE_SET = r"expected one set of legal actions at '1 \(0,\)'.*, got \[0, 1\] and \[0\]"


@pytest.mark.parametrize(
    ("walks", "odd", "words"),
    [
        (SEARCHED, {"range": (-2.0, 0.4)}, r"expected utilities from -2 to 0\.4, as the game says"),
        (SEARCHED, {"range": (-0.4, 2.0)}, r"expected utilities from -0\.4 to 2, as the game says"),
        (TREES | BOUNDED, {"range": (-2.0, math.inf)}, r"expected a finite range .* -2\.0 to inf of"),
        (ALL, {"range": (2.0, -2.0)}, r"expected a (finite )?range of utilities, got one from"),
        (ALL, _last(math.nan, math.nan), f"{_RANGE}.* got nan and nan at history '0, 0, 1'"),
        (SEARCHED, _last(math.inf, -math.inf), _RANGE),
        (SEARCHED, _last(1.0, 1.0), r"expected utilities that add up to 0, .* got 1\.0 and 1\.0"),
        (SEARCHED, _last(1.0, -1.0, 0.0), _PAIR + r"\[1.0, -1.0, 0.0\] at"),
        (SEARCHED, _last(1.0), _PAIR + r"\[1.0\] at history '0, 0, 1'"),
        (SEARCHED, _last("1", "-1"), _PAIR + r"\['1', '-1'\] at"),
        (SEARCHED, {"returns": lambda path: None}, _PAIR + "None at history"),
        (ALL, _always("chance", [(0, 0.5), (1, 0.3)]), _SUM),
        (ALL, _always("chance", [(0, 1.5), (1, -0.5)]), _SHARE),
        (ALL, _always("chance", [(0, 0.5), (1, math.nan)]), _SHARE),
        (ALL, _always("chance", []), _NONE),
        (ALL, _always("chance", [(1, 0.5), (1, 0.5)]), _DIFFER + r", got \[1, 1\] at history '\d'"),
        (ALL, {"chance_mode": _KIND.ChanceMode.DETERMINISTIC}, _NO_CHANCE),
        (ALL, _always("legal", [0, 0]), _DIFFER + ".* in an EFG file, label the actions of each node diff"),
        (WALKS, _always("legal", [0, 5]), _ACTIONS + r"\[0, 5\] at "),
        (WALKS, _always("legal", [-2, 0]), _ACTIONS + r"\[-2, 0\]"),
        (
            _some("solve", "to_efg", *FORMS) | SEARCHES,
            _STUCK,
            r"a legal action, got none at history '0, \d' of",
        ),
        (_some("solve", "nash_conv", "best_response", "to_efg", *FORMS), _KNOWN, _ONE_SET),
        (ALL, _mover(2), _TURN + r"2 at history '\d, \d'"),
        (ALL, _mover(-2), _TURN + r"-2 at history '\d, \d'"),  # both at once
        (WALKS, {"nameless": None}, _NAMES),
        (WALKS, _always("name", None), _NAMES + "None at history ''"),
        (ALL, {}, ""),
    ],
)
def test_one_line_says_what_is_wrong(walks, odd, words):
    for name, walk in walks.items():
        known = {"name": str, "information": _PERFECT} if name in SEARCHES | BOUNDED else {}
        game = _OddGame(**known | odd)
        if not odd:
            walk(game)
            continue
        with pytest.raises(ValueError, match=words) as refused:
            walk(game)
        assert "\n" not in str(refused.value) and "(): expected" in str(refused.value), name


def test_general_sums_may_add_up_to_anything():
    odd = _last(2.0, 1.5) | {"utility": _KIND.Utility.GENERAL_SUM}
    assert efce.efce_lp(_OddGame(**odd)).welfare > 0.0
    assert best_response(_OddGame(**odd), uniform, 1).value > 0.0
    with pytest.raises(ValueError, match="expected utilities from -2 to 1"):
        efce.efce_lp(_OddGame(range=(-2.0, 1.0), **odd))


# -- what the game says that all know -----------------------------------------------------------------


@pytest.mark.parametrize("walk", ["solve", "nash_conv", "best_response", "to_efg"])
def test_a_game_that_hides_what_it_says_that_all_know(walk):
    output = r"expected a game of perfect information, as it says, got .* calls .* alike"
    with pytest.raises(ValueError, match=output):
        WALKS[walk](_OddGame(information=_PERFECT))
    WALKS[walk](_OddGame(information=_PERFECT, name=str))


@pytest.mark.parametrize("names", [{}, {"name": lambda path: f"{len(path)}"}])
def test_states_below_leaves_are_looked_at_too(names):
    """The sums of u^sigma go where the tree does not."""
    with pytest.raises(ValueError, match="expected a game of perfect information, as it says"):
        _prepared(_OddGame(information=_PERFECT, **names), 100.0)


def test_boards_that_several_lines_reach_are_one_state():
    """Names may be those of positions: what is not hidden may be forgotten."""
    board = {"name": lambda path: f"{sum(path)}", "text": lambda path: f"{len(path)} {sum(path)}"}
    assert solve(_OddGame(information=_PERFECT, **board)).nash_conv == pytest.approx(0.0)


def test_many_states_are_looked_at_here_and_there():
    """Of a level of thousands, neighbors and some all over."""
    game, asked = pyspiel.load_game("tic_tac_toe"), []

    def seen(number):
        def name(player=None):
            asked.append(number)
            return str(number)

        return types.SimpleNamespace(current_player=lambda: 0, information_state_string=name)

    GameFacts(game).check_names([seen(k) for k in range(10_000)], np.zeros(10_000, np.int8))
    assert asked[:32] == list(range(32)) and 32 < len(asked) <= 65 and asked[-1] > 9_600
    assert information_state(game.new_initial_state()) == ""


# -- Gambit's files, in which actions have labels -----------------------------------------------------


def _labeled(player, labels):
    """Return a game whose last turn, a player's or chance's (0), has these labels and leaves of 1, 0, -1.

    Before it, chance and the other player (the first one where chance comes last) may end the game.
    """
    named = " ".join(f'"{label}"' for label in labels)
    shares = " ".join(f'"{label}" 1/{len(labels)}' for label in labels)
    node = f'p "" {player} 1 "" {{ {named} }} 0' if player else f'c "" 1 "" {{ {shares} }} 0'
    first_turn = f'p "" {2 if player == 1 else 1} 1 "" {{ "end" "on" }} 0'
    leaves = [f't "" {k + 2} "" {{ {1 - k} {k - 1} }}' for k in range(len(labels))]
    dealt = ['c "" 9 "" { "a" 1/2 "b" 1/2 } 0', 't "" 9 "" { 1 -1 }']
    return efg(*dealt, first_turn, 't "" 1 "" { 0.5 -0.5 }', node, *leaves)


@pytest.mark.parametrize(
    "labels", [("", ""), ("same", "same"), ("L", "R", "R"), ("L", "R", "L"), ("x", "", "")]
)
@pytest.mark.parametrize("player", [0, 1, 2])
def test_labels_that_occur_twice_are_refused_wherever_a_game_is_walked(labels, player):
    """`solve` once certified what one of the two actions gives, by halves that were counted twice."""
    for walk in (TREES | FORMS | LOOKS | (SEARCHES if player else {})).values():
        with pytest.raises(ValueError, match="label the actions of each node differently"):
            walk(_labeled(player, labels))


@pytest.mark.parametrize("labels", ["LR", "LMR"])
@pytest.mark.parametrize("refine", [False, True])
def test_the_same_games_with_labels_have_their_values(labels, refine):
    leaves = [1.0, 0.0, -1.0][: len(labels)]
    drawn, largest, smallest = sum(leaves) / len(leaves), max(leaves), min(leaves)
    for player, value in enumerate((max(0.5, drawn), min(0.5, largest), max(0.5, smallest))):
        found = solve(_labeled(player, labels), refine=refine)
        assert found.value == pytest.approx((1.0 + value) / 2.0, abs=1e-12)


def test_a_game_without_a_choice_has_its_value():
    assert solve(efg('p "" 1 1 "" { "" } 0', 't "" 1 "" { 3 -3 }'), refine=True).value == 3.0


@pytest.mark.parametrize("walk", WALKS)
def test_an_information_set_that_is_named_at_some_of_its_nodes_is_refused(walk):
    """OpenSpiel takes it for two, of which the one would know what was done."""

    def pennies(*names):
        lines = ['p "" 1 1 "" { "h" "t" } 0']
        for k, (name, sign) in enumerate(zip(names, (1, -1), strict=True)):
            lines.append(f'p "" 2 1 "{name}" {{ "h" "t" }} 0')
            lines += [f't "" {2 * k + j + 1} "" {{ {own} {-own} }}' for j, own in enumerate((sign, -sign))]
        return efg(*lines)

    with pytest.raises(ValueError, match="EFG file to name an information set alike at each of its nodes"):
        WALKS[walk](pennies("same - or not", ""))
    assert solve(pennies("same - or not", "same - or not")).value == pytest.approx(0.0, abs=1e-12)
