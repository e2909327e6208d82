"""Engines in specs: whose engine it is, what it plays, and opponents by name in a preparation."""

import contextlib
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
    EngineEvaluation,
    EnginePolicy,
    PreparationSettings,
    SearchLimit,
    board_key,
    opponent_policy,
    preparation_tree,
)
from precomp_games.chess.model.engine_policies import EngineMenu, LinearUtility
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.model.opponents import _options
from precomp_games.chess.plan.trees import equilibrium_tree
from precomp_games.chess.study.words import OpponentWords
from precomp_games.policies.mixtures import MixturePolicy
from tests.oracles.engines import HashEngine

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


@pytest.mark.parametrize("limit", [SearchLimit(nodes=77), SearchLimit(depth=4)])
def test_without_a_name_it_is_the_readers_engine_also_in_parts_of_a_spec(limit):
    engine = HashEngine()
    spec = f"uci(r=20,top_k=3,{limit})"
    policy = opponent_policy(GAME, spec, engine)
    own = EnginePolicy(GAME, engine, limit, 20.0, 3).action_probabilities_batch(states())
    assert policy.action_probabilities_batch(states()) == own
    noisy = opponent_policy(GAME, f"noisy(policy={spec},epsilon=0.25)", engine)
    for state, row, plain in zip(states(), noisy.action_probabilities_batch(states()), own, strict=True):
        legal = state.legal_actions()
        mixed = {a: 0.75 * plain.get(a, 0.0) + 0.25 / len(legal) for a in legal}
        assert row == pytest.approx(mixed, abs=1e-15)
    assert {limit for _, limit, _ in engine.asked} == {str(limit)}
    with pytest.raises(ValueError, match=r"expected uci\(engine=...\), a path or a command, got no engine"):
        make_policy(GAME, "uci()")  # afterwards it is nobody's


def test_a_mixture_shares_what_is_known_of_positions():
    policy = opponent_policy(GAME, "mixture(a=uci(r=5),b=uci(r=40),weights=of(a=3,b=1))", HashEngine())
    assert isinstance(policy, MixturePolicy)
    assert policy._position_key is board_key
    assert policy.weights.tolist() == [0.75, 0.25]


def test_options_whose_names_have_spaces_are_written_with_underscores():
    given = pyspiel.game_parameters_from_string("of(Skill_Level=5,UCI_Elo=1500,Hash=1)")
    assert _options(given) == {"Skill Level": 5, "UCI_Elo": 1500, "Hash": 1}


DRAWN = "to depend on no history, got a mixture that is drawn once"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("uci(nodes=-5)", "nodes"),
        ("uci(depth=20000)", "depth to be an integer from 1 to 10000"),
        ("uci(store=a.sqlite)", "engine= beside store="),
        ("uci(options=of(Hash=1))", "engine= beside options="),
        ("uci(plays=worst)", "plays"),
        ("noisy(policy=mixture(a=uci(),b=uci(r=40)))", DRAWN),
        ("games(file=x.pgn,prior=mixture(a=uci(),b=uci()))", DRAWN),
        (f"uci(engine={sys.executable} arguments)", "no such file"),  # one file, and no command
    ],
)
def test_refusals(spec, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pgn").write_text('[White "A"]\n[Black "B"]\n\n1. e4 e5 *\n')
    with pytest.raises((ValueError, EngineError), match=message):
        opponent_policy(GAME, spec, HashEngine(), trusted=True)


@pytest.mark.parametrize(
    "options", ["UCI_Elo=1400, UCI_LimitStrength=true", "Skill Level=0", "skill level=0", "Hash=64"]
)
def test_scores_of_a_weakened_engine_are_refused(options):
    """Whoever reads its scores is refused; whoever reads its moves is not, and asks for several."""
    engine, limit, weak = HashEngine(), SearchLimit(nodes=9), "Hash" not in options
    engine.engine_id = f"Stockfish 15.1 [{options}]"
    for name, make in (
        ("EnginePolicy", lambda: EnginePolicy(GAME, engine, limit, 10.0)),
        ("EngineMenu", lambda: EngineMenu(engine, limit, 2, 2, 50.0)),
        ("EngineEvaluation", lambda: EngineEvaluation(engine, limit, 2, LinearUtility())),
        ("preparation_tree", lambda: preparation_tree(SETTINGS, engine)),
    ):
        message = (
            rf"{name}\(\): expected options .* got '{options.split(',')[0]}'.* scores.*fewer nodes.*bestmove"
        )
        with pytest.raises(ValueError, match=message) if weak else contextlib.nullcontext():
            make()
    policy = EnginePolicy(GAME, engine, limit, 10.0, plays="bestmove")
    assert policy.samples == (20 if weak else 1)  # at full strength there is nothing to draw


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


def test_a_tree_takes_policies_that_are_there_and_no_named_opponent_where_both_prepare():
    engine = HashEngine()
    policies = preparation_policies(SETTINGS, engine)
    tree = preparation_tree(SETTINGS, engine, policies=policies)
    assert tree.fingerprint == preparation_tree(SETTINGS, engine).fingerprint
    with pytest.raises(ValueError, match="without an opponent of its own"):
        equilibrium_tree(dataclasses.replace(SETTINGS, opponent="uci(r=5)"), engine)
