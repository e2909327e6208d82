"""Every game of the library does what OpenSpiel asks of a game."""

import copy
import pickle
import random

import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

import precomp_games.chess  # noqa: F401  (registers its game)
from precomp_games import ClockGame, MetaPrecomputationGame
from precomp_games.games import registered
from precomp_games.meta_game.rules import FORMS
from tests.oracles.games import expand, random_menu, random_policy, settings
from tests.oracles.meta_games import menu_tree
from tests.properties import examples

_KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -"
_META = "python_meta_precomputation"


def _of_a_file(path):
    chess = pyspiel.load_game("python_chess(max_plies=3)")
    menus = tuple(random_menu(seed, 2, "position") for seed in (1, 2))
    expand(chess, menus, random_policy(3, "pure", "position"), 0.3).save(path)
    return pyspiel.load_game(_META, {"tree_file": str(path), "form": "reweighted", "check_supports": False})


_SPECS = "sigma=noisy(policy=uniform(),epsilon=0.5),sigma_pre=cfr(iterations=20)"
GAMES = {
    "chess": "python_chess(max_plies=16)",
    "chess from a position": f"python_chess(fen={_KIWIPETE},max_plies=16,threefold=true,fifty_moves=true)",
    "clock": "python_clock(game=connect_four(rows=5),time_0=7,time_1=6,move_time=4)",
    "clock with chance": {"game": {"name": "pig", "winscore": 4, "horizon": 9}, "time_0": 4, "time_1": 3},
    "clock of chess": {"game": {"name": "python_chess", "max_plies": 6}, "time_0": 2, "time_1": 2},
    "KJ poker": "python_kj_poker",
    "meta-game": _META,
    "meta-game of specs": f"{_META}(game=kuhn_poker(),{_SPECS},penalty_0=0.1,penalty_1=-1.0,form=reweighted)",
    "meta-game of a file": _of_a_file,
    "meta-game in memory": lambda path: MetaPrecomputationGame(menu_tree("tree", 3, policies=True)),
}


def _made(given, path):
    if callable(given):
        return given(path)
    return pyspiel.load_game(given) if isinstance(given, str) else ClockGame(given)


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "tree.npz"
    return {name: _made(given, path) for name, given in GAMES.items()}


def test_no_game_is_missing(games):
    kinds = {kind.type.short_name for kind in vars(registered).values() if hasattr(kind, "defaults")}
    assert kinds == {game.get_type().short_name for game in games.values()}


class _Walk:
    """Checks the states of a game on its way: all of them, or those of some random plays."""

    def __init__(self, game, plays=0):
        self.game, self.kind, self.rng = game, game.get_type(), random.Random(0) if plays else None
        self.largest = 0.0
        self.pasts, self.shown = {}, {}
        self.observers = {
            recall: game.make_py_observer(pyspiel.IIGObservationType(perfect_recall=recall))
            for recall in (False, True)
        }
        for _ in range(plays or 1):
            self.visit(game.new_initial_state(), ((), ()), 0, 0)
        assert len(set(self.shown.values())) == len(self.shown)  # tensors tell apart what strings do

    def visit(self, state, pasts, moves, drawn):
        self.observations(state)
        assert moves <= self.game.max_game_length()
        assert drawn <= self.game.max_chance_nodes_in_history()
        if state.is_terminal():
            assert state.current_player() == pyspiel.PlayerId.TERMINAL and state.legal_actions() == []
            assert sum(state.returns()) == pytest.approx(self.game.utility_sum(), abs=1e-12)
            assert all(self.game.min_utility() <= u <= self.game.max_utility() for u in state.returns())
            self.largest = max(self.largest, *state.returns())
            return
        assert state.returns() == [0.0, 0.0]
        actions, mover = state.legal_actions(), state.current_player()
        state.legal_actions().clear()  # the list is the caller's
        assert actions == state.legal_actions() == sorted(set(actions)) != []
        if state.is_chance_node():
            chances = dict(state.chance_outcomes())
            assert sorted(chances) == actions and max(actions) < self.game.max_chance_outcomes()
            assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12) and min(chances.values()) > 0.0
        else:
            assert max(actions) < self.game.num_distinct_actions() and state.legal_actions(1 - mover) == []
            assert len({state.action_to_string(mover, action) for action in actions}) == len(actions)
            # What a player knows names all that it knew and did, and what it can do.
            name = state.information_state_string()
            assert self.pasts.setdefault((mover, name), (pasts[mover], actions)) == (pasts[mover], actions)
        before = _facts(state)
        for action in actions if self.rng is None else [self.rng.choice(actions)]:
            after = list(pasts)
            if mover >= 0:
                after[mover] = (*pasts[mover], (name, action))
            child = state.child(action)
            assert state.string_to_action(mover, state.action_to_string(mover, action)) == action
            assert child.history() == [*state.history(), action]
            self.visit(child, tuple(after), moves + (mover >= 0), drawn + (mover < 0))
        assert _facts(state) == before

    def observations(self, state):
        for player in (0, 1):
            name = state.information_state_string(player)
            assert self.observers[True].string_from(state, player) == name
            assert self.observers[False].string_from(state, player) == state.observation_string(player)
            if self.kind.provides_information_state_tensor:
                tensor = tuple(state.information_state_tensor(player))
                assert self.shown.setdefault((player, name), tensor) == tensor
                assert state.observation_tensor(player) == list(tensor)


def _facts(state):
    """Return what equal states have in common."""
    known = [state.information_state_string(player) for player in (0, 1)]
    seen = [state.observation_string(player) for player in (0, 1)]
    return str(state), state.history(), state.current_player(), state.legal_actions(), known, seen


@pytest.mark.parametrize("name", GAMES)
def test_contract(name, games):
    game = games[name]
    pyspiel.random_sim_test(game, num_sims=2, serialize=True, verbose=False)
    with pytest.raises(ValueError, match="no observation parameters"):
        game.make_py_observer(None, {"detail": 1})
    text = pyspiel.serialize_game_and_state(game, game.new_initial_state())
    for again in (
        *(pyspiel.load_game(str(game)), pyspiel.deserialize_game_and_state(text)[0]),
        *(pickle.loads(pickle.dumps(game)), copy.deepcopy(game), type(game)(game.get_parameters())),
    ):
        assert type(again) is type(game)
        assert (str(again), again.get_parameters()) == (str(game), game.get_parameters())
        assert again.max_utility() == game.max_utility()
        assert _facts(again.new_initial_state()) == _facts(game.new_initial_state())
    _Walk(game, plays=0 if name == "KJ poker" else 5)
    rng, state = random.Random(2), game.new_initial_state()
    while not state.is_terminal():
        text = pyspiel.serialize_game_and_state(game, state)
        for again in (
            *(game.deserialize_state(state.serialize()), pyspiel.deserialize_game_and_state(text)[1]),
            *(state.clone(), copy.deepcopy(state), pickle.loads(pickle.dumps(state))),
        ):
            assert type(again) is type(state)
            assert _facts(again) == _facts(state)
            action = rng.choice(state.legal_actions())
            before, child = _facts(state), _facts(state.child(action))
            again.apply_action(action)
            assert _facts(again) == child
            assert _facts(state) == before  # copies are independent
        state = state.child(action)


@pytest.mark.parametrize("form", FORMS)
@examples(160)
@given(settings(menus=True, depth=3), st.sampled_from((0.01, (0.05, 0.3), (0.1, float("inf")))))
def test_whole_meta_games(form, case, penalties):
    tree = expand(*case, penalties, truncate="none")
    game = MetaPrecomputationGame(tree, form, check_supports=False)
    seen = _Walk(game)
    # Audits reach the bound; reweighted charges for the worst stop time at each step, which may differ.
    assert seen.largest >= game.max_utility() * (1.0 - 1e-8 if form == "audit" else 0.5)
