"""One deadline: its parts, steps that grow, samples, searches, and games, by a clock of our own."""

import math
import types

import numpy as np
import pyspiel
import pytest

from precomp_games._support import deadlines
from precomp_games._support.deadlines import Deadline, OutOfTimeError, limited, time_is_up
from precomp_games.chess import EnginePool, EvaluationStore, StoredEngine
from precomp_games.chess.engines.uci import SearchCommand
from precomp_games.policies.playouts import play_on
from tests.chess.test_engine import EPDS, FAKE, LIMIT
from tests.oracles.games import uniform


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose entry is the time."""
    now = [0.0]
    own = types.SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(deadlines, "time", own)
    return now


def test_parts_are_of_what_is_left(clock):
    assert math.isinf(deadlines.seconds_left()) and not time_is_up()
    with limited(Deadline(60.0)):
        clock[0] = 20.0
        with deadlines.part(0.25):
            assert deadlines.seconds_left() == 10.0
            clock[0] = 30.0
            assert time_is_up()
        assert deadlines.seconds_left() == 30.0  # what a part leaves is there for the others
        with limited(None):
            assert not time_is_up()
    pressed = []
    with limited(Deadline(math.inf, lambda: bool(pressed))), deadlines.part(0.5):
        assert not time_is_up()
        pressed.append("Ctrl-C")
        assert time_is_up()


_ENDS = [(1.0, 100.0, 8), (1.0, 0.0, 1), (10.0, 35.0, 2), (10.0, 41.0, 2), (50.0, 20.0, 1), (0.0, 0.0, 1)]


@pytest.mark.parametrize(("seconds", "end", "found"), [*_ENDS, (1.0, math.inf, 8)])
def test_steps_are_taken_as_far_as_time_goes(clock, seconds, end, found):
    """Each takes so many seconds a unit, and ends amid it where time is up."""

    def work(step):
        clock[0] += seconds * step
        if time_is_up():
            raise OutOfTimeError
        return f"found {step}"

    with limited(Deadline(end)):
        assert deadlines.as_far_as_time_goes([1, 2, 4, 8], 8, work) == (found, f"found {found}")
    assert deadlines.as_far_as_time_goes([1, 2, 4, 8], 8, work) == (8, "found 8")
    with limited(Deadline(math.inf, lambda: True)):  # who is stopped has the first step
        assert deadlines.as_far_as_time_goes([1, 2, 4, 8], 8, work) == (1, "found 1")


@pytest.mark.parametrize("end", [0.0, 10.0, 50.0, 1000.0, None])
def test_samples_are_drawn_and_in_their_order(clock, end):
    """Not the first ones; the same by the same seed; and all of them where there is time."""
    items = list(range(100))

    def work(drawn):
        clock[0] += len(drawn)
        return drawn

    with limited(None if end is None else Deadline(end)):
        count, drawn = deadlines.sample_in_time(items, work, seed=3, first=5)
    assert count == len(drawn) and drawn == sorted(drawn)
    assert count == {0.0: 5, 1000.0: 100, None: 100}.get(end, count) and (end != 50.0 or 10 <= count < 50)
    assert drawn == sorted(np.random.default_rng(3).permutation(100)[:count].tolist())


def test_no_search_is_begun_when_time_is_up(clock, monkeypatch):
    """Searches that were begun are finished and kept, for a tree and for single positions."""

    class Timed(SearchCommand):
        def start(self):
            clock[0] += 1.0
            super().start()

    monkeypatch.setattr("precomp_games.chess.engines.uci.SearchCommand", Timed)
    with EvaluationStore(":memory:") as store, EnginePool(FAKE, workers=1) as pool:
        engine = StoredEngine(store, pool)
        with limited(Deadline(3.0)), pytest.raises(OutOfTimeError, match="expected time for 8 searches"):
            engine.search(EPDS[:8], LIMIT, 1)
        assert engine.searches == len(store) == 3
        with limited(Deadline(0.0)):
            assert len(engine.search(EPDS[:3], LIMIT, 1)) == 3  # they are stored
            with pytest.raises(OutOfTimeError):
                engine.search(EPDS[:8], LIMIT, 1)
        assert engine.searches == 3
        assert len(engine.search(EPDS[:8], LIMIT, 1)) == 8


@pytest.mark.parametrize("ends", [0, 3, 40])
def test_games_that_end_in_time_are_the_first_ones(clock, ends):
    """And two are played to their ends in any case; each is the game that it is without a deadline."""
    state = pyspiel.load_game("tic_tac_toe").new_initial_state()

    def policy(state):
        clock[0] += 0.25
        if time_is_up():
            raise OutOfTimeError
        return uniform(state)

    def played():
        streams = [np.random.default_rng(k) for k in range(60)]
        return list(map(str, play_on([state] * 60, (policy, policy), streams, min_probability=0.0)))

    whole, clock[0] = played(), 0.0
    with limited(Deadline(float(ends))):
        some = played()
    assert 2 <= len(some) < 60 and some == whole[: len(some)]
