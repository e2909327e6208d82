"""Playthroughs of the meta-game, as OpenSpiel writes them, against tests/meta_game/goldens.

    python -m tests.meta_game.test_playthrough    # writes the goldens again (made with OpenSpiel 2.0.2)

OpenSpiel prints 5 or 6 digits of a float. The best response has no ties to break, so sigma_pre is 1/4 and
3/4 on any machine.
"""

from __future__ import annotations

from pathlib import Path

import pyspiel
import pytest
from open_spiel.python.algorithms import generate_playthrough

from precomp_games import Menu, MetaPrecomputationGame
from tests.oracles.games import expand, uniform

_GOLDENS = Path(__file__).parent / "goldens"
_SIGMA_PRE = "noisy(policy=best_response(to=random(seed=0)),epsilon=0.5)"
_KUHN = (
    f"python_meta_precomputation(game=kuhn_poker(),sigma=uniform(),sigma_pre={_SIGMA_PRE},"
    "penalty_0=0.25,penalty_1=0.25,form={})"
)
# A game string cannot name a menu, so that of a game in memory is played; player 1 has no choice of entries.
_WITH_A_MENU = MetaPrecomputationGame(
    expand(pyspiel.load_game("kuhn_poker"), (Menu.of_actions(), uniform), uniform, 0.25)
)
_PLAYTHROUGHS = {
    # An audit of player 0, who memorizes the jack, and stops when it has passed and is bet at.
    "kuhn_audit": (_KUHN.format("audit"), [1, 0, 1, 0, 0]),
    # King against queen: player 0 memorizes and bets, player 1 memorizes and calls.
    "kuhn_reweighted": (_KUHN.format("reweighted"), [2, 1, 1, 1, 1, 1]),
    # Jack against queen: player 0 memorizes to bet, and player 1 stops and calls.
    "kuhn_menu": (str(_WITH_A_MENU), [0, 0, 1, 2, 1, 0, 1]),
}


def _playthrough(name: str) -> str:
    game, actions = _PLAYTHROUGHS[name]
    return str(generate_playthrough.playthrough(game, actions, seed=0))


@pytest.mark.parametrize("name", _PLAYTHROUGHS)
def test_playthrough(name: str) -> None:
    text = _playthrough(name)
    assert text.count("action: ") == len(_PLAYTHROUGHS[name][1])  # nothing was left to chance
    assert len(text.splitlines()) <= 310  # of which half are tensors
    golden = (_GOLDENS / f"{name}.txt").read_text(encoding="utf-8")
    assert text == golden, "meant so? python -m tests.meta_game.test_playthrough"


def test_every_golden_is_compared() -> None:
    assert {path.stem for path in _GOLDENS.glob("kuhn_*.txt")} == set(_PLAYTHROUGHS)


if __name__ == "__main__":
    for stem in _PLAYTHROUGHS:
        (_GOLDENS / f"{stem}.txt").write_text(_playthrough(stem), encoding="utf-8")
