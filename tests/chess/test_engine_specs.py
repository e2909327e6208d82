"""Engines in specs: whose engine it is, what it plays, and opponents by name in a preparation."""

import dataclasses
import sys

import numpy as np
import pyspiel
import pytest

from precomp_games import make_policy
from precomp_games.algorithms import best_precomputation
from precomp_games.chess import (
    ChessGame,
    EngineError,
    EnginePolicy,
    PreparationSettings,
    SearchLimit,
    board_key,
    opponent_policy,
    preparation_tree,
)
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.model.opponents import _options
from precomp_games.chess.plan.trees import equilibrium_tree
from precomp_games.chess.study.words import OpponentWords
from precomp_games.policies.mixtures import MixturePolicy
from tests.chess import fake_engine
from tests.chess.test_preparation import HashEngine

GAME = ChessGame()
SETTINGS = PreparationSettings(
    penalty=1e-3,
    analyst_limit=SearchLimit(nodes=50),
    opponent_limit=SearchLimit(nodes=10),
    max_plies=5,
    menu=1,
)


def states():
    """Some positions."""
    rng, found = np.random.default_rng(0), []
    state = GAME.new_initial_state()
    for _ in range(12):
        found.append(state.clone())
        state.apply_action(int(rng.choice(state.legal_actions())))
    return found


def test_without_a_name_it_is_the_readers_engine():
    for limit in (SearchLimit(nodes=77), SearchLimit(depth=4)):
        engine = HashEngine()
        policy = opponent_policy(GAME, f"uci(r=20,top_k=3,{limit})", engine)
        plain = EnginePolicy(GAME, engine, limit, 20.0, 3)
        assert policy.action_probabilities_batch(states()) == plain.action_probabilities_batch(states())
        assert {limit for _, limit, _ in engine.asked} == {str(limit)}


def test_the_readers_engine_is_nobodys_afterwards():
    opponent_policy(GAME, "uci()", HashEngine())
    with pytest.raises(ValueError, match=r"expected uci\(engine=...\), a path or a command, got no engine"):
        make_policy(GAME, "uci()")


def test_parts_of_specs_have_it_too_and_are_asked_at_once():
    engine = HashEngine()
    policy = opponent_policy(GAME, "noisy(policy=uci(r=20,top_k=3),epsilon=0.25)", engine)
    plain = EnginePolicy(GAME, engine, SearchLimit(nodes=1000), 20.0, 3)
    rows = policy.action_probabilities_batch(states())
    for state, row, own in zip(states(), rows, plain.action_probabilities_batch(states()), strict=True):
        legal = state.legal_actions()
        assert row == pytest.approx({a: 0.75 * own.get(a, 0.0) + 0.25 / len(legal) for a in legal}, abs=1e-15)


def test_a_mixture_shares_what_is_known_of_positions():
    policy = opponent_policy(GAME, "mixture(a=uci(r=5),b=uci(r=40),weights=of(a=3,b=1))", HashEngine())
    assert isinstance(policy, MixturePolicy)
    assert policy._position_key is board_key
    assert policy.weights.tolist() == [0.75, 0.25]


@pytest.mark.parametrize(
    "spec", ["noisy(policy=mixture(a=uci(),b=uci(r=40)))", "games(file=x.pgn,prior=mixture(a=uci(),b=uci()))"]
)
def test_what_is_drawn_once_per_game_is_no_part_of_what_has_no_history(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pgn").write_text('[White "A"]\n[Black "B"]\n\n1. e4 e5 *\n')
    with pytest.raises(ValueError, match="to depend on no history, got a mixture that is drawn once"):
        opponent_policy(GAME, spec, HashEngine(), trusted=True)


def test_an_engine_that_is_named_is_one_file_and_no_command_with_arguments():
    with pytest.raises(EngineError, match="no such file"):
        opponent_policy(GAME, f"uci(engine={sys.executable} {fake_engine.__file__})", trusted=True)


def test_options_whose_names_have_spaces_are_written_with_underscores():
    given = pyspiel.game_parameters_from_string("of(Skill_Level=5,UCI_Elo=1500,Hash=1)")
    assert _options(given) == {"Skill Level": 5, "UCI_Elo": 1500, "Hash": 1}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("uci(nodes=-5)", "nodes"),
        ("uci(depth=20000)", "depth to be an integer from 1 to 10000"),
        ("uci(store=a.sqlite)", "engine= beside store="),
        ("uci(options=of(Hash=1))", "engine= beside options="),
        ("uci(plays=worst)", "plays"),
    ],
)
def test_refusals(spec, told):
    with pytest.raises(ValueError, match=told):
        opponent_policy(GAME, spec, HashEngine(), trusted=True)


@pytest.mark.parametrize("player", [0, 1])
def test_the_same_opponent_by_name_gives_the_same_book(player):
    """Out of book both of them play by the settings; only the opponent has a name."""
    settings = dataclasses.replace(SETTINGS, player=player, opponent_temperature_cp=25.0, top_k=3)
    named = dataclasses.replace(settings, opponent_temperature_cp=10.0, opponent="uci(r=25,top_k=3,nodes=10)")
    plain, other = (preparation_tree(each, HashEngine()) for each in (settings, named))
    one, two = (best_precomputation(tree, player) for tree in (plain, other))
    assert one.size > 0
    assert (one.value, one.size, one.utility) == (two.value, two.size, two.utility)
    assert OpponentWords(named, "engine").name == "uci(r=25,top_k=3,nodes=10)"


def test_a_tree_takes_policies_that_are_there():
    engine = HashEngine()
    policies = preparation_policies(SETTINGS, engine)
    tree = preparation_tree(SETTINGS, engine, policies=policies)
    assert tree.fingerprint == preparation_tree(SETTINGS, engine).fingerprint


def test_where_both_prepare_nobody_has_a_name():
    with pytest.raises(ValueError, match="without an opponent of its own"):
        equilibrium_tree(dataclasses.replace(SETTINGS, opponent="uci(r=5)"), HashEngine())
