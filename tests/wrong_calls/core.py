"""Calls that work: history trees, leaf values, policies, the meta-game, clocks and KJ poker."""

import functools

import pyspiel
from open_spiel.python import policy

from precomp_games import HistoryTree
from tests.wrong_calls import good_call


@functools.cache
def kuhn():
    return pyspiel.load_game("kuhn_poker")


@functools.cache
def kuhn_tree():
    uniform = policy.UniformRandomPolicy(kuhn())
    return HistoryTree.from_game(
        kuhn(), sigma_pre=lambda s: {s.legal_actions()[-1]: 1.0}, sigma=uniform, penalties=0.01
    )


@good_call("precomp_games:HistoryTree.find", fine={"actions": [()]})
def _():
    return kuhn_tree().find, {"actions": kuhn_tree().actions(5)}
