"""Memory is measured, and what would take too much is refused early, with what to change."""

import gc
import math
import pathlib
import re
import sys
import time
import tracemalloc
from typing import Any, cast
from unittest import mock

import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precomp_games import HistoryTree, MixturePolicy, RolloutValues, config
from precomp_games._support import memory
from precomp_games._support.memory import BLOCK, MemoryMeter, check_memory, resident_memory, size_text
from tests.chess.test_engine import forked
from tests.oracles.games import penalties, random_menu, random_policy, random_tree, setting, settings, uniform
from tests.properties import examples


def test_sizes():
    texts = {"2GB": 2e9, "1.5 g": 1.5e9, "512MiB": 512 * 2**20, "1GiB": 2**30, "3000000": 3e6}
    for limit, size in {**texts, 2e9: 2e9, 10**6: 1e6, math.inf: math.inf}.items():
        assert check_memory(limit, "max_memory") == size
    for wrong in ("", "GB", "2 X", "-1GB", "0", 0, -1.0, math.nan, True, [1], 2, "2", "2K"):
        with pytest.raises(ValueError, match=r"config\(\): expected max_memory"):
            config(max_memory=wrong)
    assert [size_text(s) for s in (5, 2e9, 1.234e6, 3.5e12)] == ["5 B", "2 GB", "1.23 MB", "3.5 TB"]


def test_the_default_is_a_share_of_what_is_available(monkeypatch, tmp_path):
    """Of the machine's and the groups' room, with what the process has: others' memory is not to be had."""
    assert 1e8 < memory.default_memory() < 1e15
    monkeypatch.setattr(memory, "resident_memory", lambda: 1e9)
    monkeypatch.setattr(memory, "_MEMORY", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 4000000 kB\nHugePages_Total: 0\n")
    for rooms, available in (([], 4.096e9), ([1e18, 2e9], 2e9), ([-1.0], 0.0)):
        monkeypatch.setattr(memory, "_group_rooms", lambda rooms=rooms: rooms)
        assert memory.default_memory() == pytest.approx(0.8 * (1e9 + available))


def test_rooms_of_control_groups(tmp_path, monkeypatch):
    """The limits of version 1 and of version 2 count, of the group and of what it is in."""
    groups = tmp_path / "groups"
    monkeypatch.setattr(memory, "_CGROUPS", groups)
    (tmp_path / "memory.max").write_text("7")  # of no group
    listed = tmp_path / "cgroup"
    listed.write_text("5:cpu:/a\n4:memory:/a/b\n0::/c\n")
    monkeypatch.setattr(memory, "_OWN_GROUPS", listed)
    for folder, name, text in (
        ("memory/a/b", "memory.limit_in_bytes", "4000"),
        ("memory/a/b", "memory.usage_in_bytes", "500"),
        ("memory/a/b", "memory.stat", "inactive_file 1\ntotal_inactive_file 200"),
        ("memory/a", "memory.limit_in_bytes", "3000"),
        ("c", "memory.max", "max"),
        (".", "memory.max", "5000"),
        (".", "memory.current", "1000"),
        (".", "memory.stat", "anon 9\ninactive_file 30"),
    ):
        (groups / folder).mkdir(parents=True, exist_ok=True)
        (groups / folder / name).write_text(text + "\n")
    assert sorted(memory._group_rooms()) == [3000.0, 3700.0, 4030.0]


def test_resident_memory_grows_with_what_is_held():
    memory.give_back()  # or it is held in what other tests have freed
    before = resident_memory()
    held = bytearray(64 * 2**20)
    for k in range(0, len(held), 4096):
        held[k] = 1
    assert 0.9 * len(held) < resident_memory() - before < 1.3 * len(held)


@pytest.fixture
def used(monkeypatch):
    """[memory of the process], as a test sets it; nothing is given back."""
    used = [1e6]
    monkeypatch.setattr(memory, "resident_memory", lambda: used[0])
    monkeypatch.setattr(memory, "give_back", lambda: None)
    return used


def test_what_follows_is_estimated_by_what_came(used):
    """Objects of 1000 bytes each: refused when a fifth of them is there, and not at the limit."""
    meter, made, count = MemoryMeter(31e6, "buy more, or "), 0, 5 * BLOCK

    def objects():
        nonlocal made
        for _ in range(count):
            made += 1
            used[0] += 1000
            yield made

    meter.begin("at the start")
    with pytest.raises(ValueError) as refused:
        list(meter.watched("objects", objects(), count))
    assert made == BLOCK
    assert str(refused.value) == (
        "expected to need at most max_memory=31 MB, got an estimate of 42 MB at the start, where "
        "9.19 MB are in use; buy more, or raise max_memory"
    )
    used[0], made = 1e6, 0
    assert len(list(MemoryMeter(43e6).watched("objects", objects(), count))) == count


def test_memory_that_was_freed_is_given_back_first(used, monkeypatch):
    used[0] = 2e9
    monkeypatch.setattr(memory, "give_back", lambda: used.__setitem__(0, 0.5e9))
    MemoryMeter(1e9).check(0.4e9)


def test_the_refusal_says_what_to_change():
    game = pyspiel.load_game("tic_tac_toe")
    how = {"sigma_pre": uniform, "sigma": uniform, "penalties": (1e-4, math.inf)}
    whole = (
        "raise the penalties, give a position_key, give an evaluation function as leaf_value, or raise max_m"
    )
    flat = {"leaf_value": lambda state: 0.0, "position_key": lambda state: state.history_str()}
    with config(max_memory=resident_memory() + 1e5):
        for more, words in (
            ({}, whole),
            (flat, "raise the penalties, or raise max_memory$"),
            ({"leaf_value": RolloutValues(games=1000)}, "max_memory"),
        ):
            with pytest.raises(ValueError, match=words):
                HistoryTree.from_game(game, **how, **more)


@examples(80)
@given(case=settings(menus=True, depth=5), penalties=penalties(), several=st.booleans())
@example(case=setting(random_tree(2, depth=6), 1), penalties=(0.01, 0.01), several=False)  # large levels
def test_trees_are_the_same_in_blocks(case, penalties, several):
    game, pre, sigma = case
    if several:
        sigma, penalties = (sigma[0], MixturePolicy(sigma)), (penalties[0], math.inf)
    found = []
    for block in (BLOCK, 3):
        with (
            mock.patch("precomp_games.policies.rows.BLOCK", block),
            mock.patch("precomp_games.tree.expansion.levels.BLOCK", block),
            mock.patch.object(memory, "BLOCK", block),
        ):
            tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties)
        mixed = tree.mixture.sigma.tolist() if tree.mixture else None
        found.append((tree.fingerprint, tree.work, mixed))
    assert found[0] == found[1]


def test_components_are_asked_a_block_at_a_time(used, monkeypatch):
    """So the memory that their answers take is looked at between blocks."""
    monkeypatch.setattr("precomp_games.policies.rows.BLOCK", 3)
    asked = []

    class Component:
        def action_probabilities_batch(self, states):
            asked.append(len(states))
            used[0] += 1e6 * len(states)
            return [uniform(state) for state in states]

    def expand(limit):
        used[0] = 1e6
        asked.clear()
        with config(max_memory=limit):
            sigma = uniform, MixturePolicy([Component(), Component()])
            given = {"penalties": (1e-3, math.inf), "leaf_value": lambda state: 0.0}
            return HistoryTree.from_game(random_tree(2, depth=6), sigma_pre=uniform, sigma=sigma, **given)

    expand(1e15)
    whole = sum(asked)
    assert max(asked) == 3 and whole > 50
    with pytest.raises(ValueError, match=r"got an estimate of 30.4 MB .* where 19 MB are in use"):
        expand(30e6)
    assert sum(asked) == 18 < whole


def apart(work):
    """Return what a function gives in a process of its own."""
    process, heard = forked(lambda tell: tell(work()))
    found = heard.recv()
    process.join()
    return found


def shares_taken(*expands):
    """Return {module: the largest share that was taken of one of its large estimates}, by tracemalloc."""

    def work():
        found, last, meter = {}, [], cast(Any, MemoryMeter)

        def check(self, ahead=0.0):
            for where, size, start in last:
                share = (tracemalloc.get_traced_memory()[1] - start) / size
                found[where] = max(share, found.get(where, 0.0))
            last.clear()
            if ahead > 3e5:
                gc.collect()  # what is let go later would be taken off what is in use
                tracemalloc.reset_peak()
                where = sys._getframe(1).f_globals["__name__"]
                last.append((where, ahead, tracemalloc.get_traced_memory()[0]))

        meter.check = check
        tracemalloc.start(1)
        for expand in expands:
            expand()
        check(None)
        return found

    return apart(work)


# Costs seconds: memory shows in large arrays only.
def test_arrays_take_what_is_estimated():
    """On trees whose states are few or cheap."""
    usual = {"sigma": random_policy(2, by="position"), "penalties": 1e-9, "leaf_value": lambda state: 0.0}
    pre, menu = random_policy(1, by="position"), random_menu(5, by="position")
    evaluated = {"stop_value": "evaluate", "penalties": (1e-9, math.inf), "truncate": "values"}
    game = random_tree(3, depth=8, actions=4, chance=0.0, width=2)
    wide = [
        lambda given=given: HistoryTree.from_game(
            game, position_key=str, **usual | {"truncate": "none"} | given
        )
        for given in ({"sigma_pre": pre}, {"sigma_pre": menu}, {"sigma_pre": pre} | evaluated)
    ]
    deep = {"sigma_pre": random_policy(1), "sigma": random_policy(2)}
    other = random_tree(3, depth=8, actions=4, chance=0.0)
    assert 0.5 <= shares_taken(*wide)["precomp_games.tree.expansion.levels"] <= 1.0
    answers = shares_taken(lambda: HistoryTree.from_game(other, **usual | deep))
    assert 0.5 <= answers["precomp_games.tree.expansion.positions"] <= 1.0


def expanded(expand, room, held=0):
    """Expand a tree in a process of its own, with so much room, of which something else holds a part.

    Return its histories or the refusal, seconds since the last look at the memory, and the share of the room
    that was taken.
    """

    def work():
        looked, meter = [0.0], cast(Any, MemoryMeter)
        hold = meter._hold

        def timed(self, used, ahead):
            looked[0] = time.process_time()  # others may have the machine
            hold(self, used, ahead)

        meter._hold = timed
        memory.give_back()
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        before = resident_memory()
        other = bytearray(int(held))  # by policies and engines, say
        other[::4096] = b"x" * len(range(0, len(other), 4096))
        try:
            with config(max_memory=before + room):
                output = str(expand().num_histories)
        except ValueError as error:
            output = str(error)
        seconds = time.process_time() - looked[0]
        # What getrusage has is the most of the process that started this one, too.
        (most,) = re.findall(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())
        return output, seconds, (int(most) * 1024 - before) / room

    return apart(work)


def tree_of(game, penalty, opponent=uniform):
    """Return what expands a game against somebody uniform."""
    given = {"sigma_pre": uniform, "sigma": (uniform, opponent), "penalties": (penalty, math.inf)}
    return lambda: HistoryTree.from_game(game, **given)


ANOTHER = pytest.mark.slow("another kind of states")
ALONE = ["cursor_go(board_size=2,max_cursor_moves=2)", "phantom_ttt", "go(board_size=9)"]


@pytest.mark.parametrize(
    ("expand", "room", "most"),
    [
        (tree_of("python_chess", 0.01), 250e6, 1.2),
        (tree_of("go(board_size=9)", 1e-5), 250e6, 1.2),
        (tree_of("breakthrough", 1e-7, MixturePolicy([uniform] * 6)), 250e6, 1.2),
        pytest.param(tree_of("pig(winscore=20,horizon=60)", 1e-6), 250e6, 1.2, marks=ANOTHER),
        # Where blocks of answers are put together.
        pytest.param(tree_of("breakthrough", 1e-7), 300e6, 1.2, marks=ANOTHER),
        pytest.param(tree_of("tic_tac_toe", 1e-6), 60e6, 1.2, marks=ANOTHER),
        *(pytest.param(lambda it=it: HistoryTree.of_game(it), 1e9, 1.0, marks=ANOTHER) for it in ALONE),
    ],
)
def test_games_that_run_away_are_refused(expand, room, most):
    """Within a second of the estimate that passes the limit, and without using much more than the room."""
    output, seconds, share = expanded(expand, room)
    assert re.match(r"HistoryTree\.\w+\(\): expected to need at most max_memory=", output)
    assert seconds <= 1.0 and share <= most


@pytest.mark.slow("a machine's memory")
def test_a_limit_is_used_and_not_passed():
    """The same tree beside what just lets it fit, and beside a little more."""
    output, _, share = expanded(tree_of("tic_tac_toe", 1e-9), 2e9, held=1.75e9)
    assert output == "549946"
    assert 0.9 <= share <= 1.0
    output, seconds, share = expanded(tree_of("tic_tac_toe", 1e-9), 2e9, held=1.9e9)
    assert "got an estimate of" in output and seconds <= 1.0
    assert 0.9 <= share <= 1.1


POKER = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,firstPlayer=1 1,"
    "maxRaises=2 2,numSuits=2,numRanks=8,numHoleCards=1,numBoardCards=0 1)"
)


@pytest.mark.slow("a machine's memory")
@pytest.mark.parametrize(
    ("game", "most"),
    [
        ("liars_dice(dice_sides=6)", 250.0),
        ("dark_hex(num_rows=2,num_cols=3,gameversion=adh)", 500.0),
        (POKER, 500.0),
    ],
)
def test_bytes_a_history_are_what_the_page_says(game, most):
    """At the peak, as docs/zero_sum.md says."""
    loaded = pyspiel.load_game(game)
    HistoryTree.of_game("kuhn_poker")  # what is compiled or loaded once
    histories, _, share = expanded(lambda: HistoryTree.of_game(loaded), 1e11)
    assert 1e11 * share / int(histories) <= most
