"""The simulation of a cluster against what is known, and against an event loop that looks at everything."""

import numpy as np
import pytest

from benchmarks import cluster_costs, cluster_scale
from benchmarks.cluster_simulation import Rules, simulate

pytestmark = pytest.mark.test_all  # a simulation of machines


def _random_tree(rng, count):
    """(children, depth by depth) of searches in breadth-first order, a parent's in a row."""
    parent = np.sort(rng.integers(0, np.maximum(np.arange(1, count), 1)))
    return parent, np.searchsorted(parent, np.arange(count + 1)) + 1


def _brute_force(seconds, slowness, rules, rounds, between, children):
    """(seconds, searching, batches): every engine and batch is looked at, at every event."""
    clock = searching = pace = scheduler = 0.0
    ready, batches, released = [], [], 0
    while True:
        under_way = [batch for batch in batches if not batch["told"]]
        if ready and len(under_way) < rules.ahead * len(slowness):
            size = 1 if pace == 0.0 else int(min(rules.batch_seconds / pace, rules.most))
            size = max(1, min(size, int(np.ceil(len(ready) / (rules.ahead * len(slowness))))))
            clock += rules.submit
            takes = rules.scheduler_task + rules.scheduler_result * size
            scheduler = max(scheduler, clock) + takes
            has = [0] * len(slowness)
            for batch in batches:
                has[batch["engine"]] += batch["end"] + rules.latency > scheduler
            engine = int(np.argmin(has))
            before = [batch["end"] for batch in batches if batch["engine"] == engine]
            asked, ready = ready[:size], ready[size:]
            takes = sum(seconds[k] for k in asked) * slowness[engine]
            start = max([scheduler + rules.latency, *before])
            end = start + rules.worker_task + takes
            batches.append({"engine": engine, "end": end, "asked": asked, "took": takes, "told": False})
            continue
        if not under_way:
            clock += between[released - 1] if released else 0.0
            if released == len(between):
                return clock, searching, len(batches)
            ready += range(rounds[released], rounds[released + 1])
            released += 1
            continue
        clock = max(clock, min(batch["end"] for batch in under_way) + rules.latency)
        back = [batch for batch in under_way if batch["end"] + rules.latency <= clock]
        clock += rules.look
        for batch in sorted(back, key=lambda batch: (batch["end"], batch["engine"]))[: rules.at_once]:
            clock += rules.fetch + rules.result * len(batch["asked"])
            searching += batch["took"]
            pace = batch["took"] / len(batch["asked"])
            batch["told"] = True
            for k in batch["asked"]:
                ready += range(children[k], children[k + 1]) if children is not None else ()


@pytest.mark.parametrize("seed", range(20))
def test_an_event_loop_that_looks_at_everything(seed):
    rng = np.random.default_rng(seed)
    count, engines = int(rng.integers(1, 60)), int(rng.integers(1, 8))
    seconds = rng.exponential(1.0, count)
    slowness = np.where(rng.random(engines) < 0.2, 5.0, 1.0)
    costs = rng.exponential(0.1, 7) * rng.integers(0, 2)
    rules = Rules(
        *costs,
        latency=float(rng.exponential(0.1)),
        batch_seconds=3.0,
        ahead=int(rng.integers(1, 4)),
        at_once=int(rng.integers(1, 4)),
    )
    if seed % 2:
        rounds = np.unique([0, *rng.integers(0, count + 1, 5), count])
        between, children = rng.exponential(0.5, len(rounds) - 1), None
    else:
        rounds, between, (_, children) = np.array([0, 1]), np.ones(1), _random_tree(rng, count)
    found = simulate(seconds, slowness, rules, rounds, between, children)
    expected = _brute_force(seconds, slowness, rules, rounds, between, children)
    assert (found.seconds, found.searching, found.batches) == pytest.approx(expected)


def test_a_client_that_has_more_to_do_than_the_engines_is_the_bound():
    count = 2000
    found = simulate(
        np.full(count, 1e-3), np.ones(50), Rules(result=0.01), np.array([0, count]), np.full(1, 5.0)
    )
    assert found.client == pytest.approx(count * 0.01 + 5.0)
    assert found.client <= found.seconds <= found.client + 1.0


def test_levels_grow_as_those_measured():
    costs = cluster_costs.load()
    sizes = cluster_scale.level_sizes(costs, 1_000_000)
    assert sizes.sum() == 1_000_000 and len(sizes) == len(costs.levels)
    later = sizes[40:] / np.array(costs.levels[40:])
    assert later == pytest.approx(np.full(len(later), later.max()), rel=0.01)
    children = cluster_scale._children(sizes)  # a level after the other
    assert children[np.cumsum(sizes)[:-1]].tolist() == np.cumsum(sizes)[1:].tolist()


def test_measurements_are_read_as_they_were_written(tmp_path):
    costs = cluster_costs.load()
    cluster_costs.save(costs, tmp_path / "costs.json")
    assert cluster_costs.load(tmp_path / "costs.json") == costs
    for nodes, quantiles in costs.search_seconds.items():
        assert quantiles == sorted(quantiles) and 1e-7 < quantiles[0] / nodes < 1e-5


def test_the_table_and_the_plot(tmp_path, capsys):
    cluster_scale.report(cluster_costs.load(), tmp_path, searches=2000, engines=20)
    table = (tmp_path / "cluster_scale.md").read_text()
    assert all(way.name in table for way in cluster_scale.WAYS.values()) and table in capsys.readouterr().out
    assert (tmp_path / "cluster_scale.png").stat().st_size > 10_000
