"""Settings of a process: memory and bars, in threads as well, and what takes long is shown."""

import threading

import pytest

from precomp_games import HistoryTree, config
from precomp_games._support.config import _settings, memory_limit
from precomp_games._support.memory import default_memory
from precomp_games.algorithms import best_first_precomputation, certified_precomputation, efce, solve
from precomp_games.chess import read_games
from tests.oracles.efce import battleship
from tests.oracles.games import random_policy, random_tree, uniform
from tests.shown import shown


def test_settings_hold_until_the_end_of_their_block():
    before = dict(_settings)
    assert memory_limit() == pytest.approx(default_memory(), rel=0.1)
    with config(max_memory="2GB"):
        assert memory_limit() == 2e9
        with config(progress=print), config(max_memory=3e9):
            assert memory_limit() == 3e9 and _settings["progress"] is print
        assert memory_limit() == 2e9 and _settings["progress"] is before["progress"]
        with pytest.raises(ValueError, match=r"config\(\): expected progress to be a function, got 3"):
            config(max_memory=5e9, progress=3)
        assert memory_limit() == 2e9
    assert _settings == before
    back = config(max_memory="4GB")  # without a block, until something else is set
    assert memory_limit() == 4e9
    back.close()
    assert _settings == before


def test_threads_have_the_settings_of_the_process():
    def expand():
        try:
            HistoryTree.from_game("tic_tac_toe", sigma_pre=uniform, sigma=uniform, penalties=1e-3)
        except ValueError as error:
            message.append(str(error))

    message = []
    with shown() as bars, config(max_memory=1e6):
        thread = threading.Thread(target=expand)
        thread.start()
        thread.join()
    assert "expected to need at most max_memory=1 MB" in message[0]
    assert [bar.given["desc"] for bar in bars] == ["Expanding"] and bars[0].ended


def test_a_tree_is_shown_level_by_level():
    how = {"sigma_pre": random_policy(1), "sigma": uniform, "penalties": 1e-3}
    with shown() as bars:
        tree = HistoryTree.from_game(random_tree(3), **how, leaf_value=lambda state: 0.0)
        HistoryTree.from_game(random_tree(3), **how)
    first, second, below = bars
    assert [note for _, note in first.notes] == [f"level {level}" for level in range(len(first.notes))]
    sizes = [size for size, _ in first.notes]
    assert sizes == sorted(sizes) and sizes[-1] == tree.num_histories
    assert second.notes == first.notes and below.given["desc"] == "Below the leaves"
    assert below.notes == sorted(below.notes) and all(bar.ended for bar in bars)


def test_solvers_and_searches_show_what_they_measure():
    game, policies = random_tree(3, depth=3), (random_policy(3), random_policy(5))
    with shown() as bars:
        by_games = certified_precomputation(game, *policies, 0.02, 0, epsilon=0.3)
        first = best_first_precomputation(game, *policies, 0.02, 0, lambda state: 0.0)
        solved = solve("kuhn_poker", method="cfr+", iterations=150)
    for bar, found in zip(bars, (by_games, first), strict=False):
        assert bar.notes == [(work, f"worth {low:.4f} to {up:.4f}") for work, low, up in found.trace]
    expected = [(iterations, f"NashConv {nash_conv:.2e}") for iterations, nash_conv in solved.trace]
    assert bars[-1].notes == expected and bars[-1].total == 150


def test_subgames_and_files_are_shown(tmp_path):
    game, path = battleship(2, 2, 2), tmp_path / "games.pgn"
    path.write_text('[Event "?"]\n[White "a"]\n[Black "b"]\n[Result "*"]\n\n1. e4 e5 *\n\n' * 3)
    with shown() as bars:
        parts = efce.Resolving.of(game, efce.uniform_blueprint(), efce.public_moves(game, 1))
        assert len(list(read_games(path))) == 3
    assert [done for done, _ in bars[0].notes] == list(range(1, len(parts.names) + 1))
    assert bars[-1].given["unit"] == " bytes" and bars[-1].total == path.stat().st_size
