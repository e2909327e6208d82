"""How random a player is: what was simulated is found again, and intervals hold as often as they say."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import chess
import numpy as np
import pytest

from precomp_games.chess import EnginePool, EvaluationStore, SearchLimit, StoredEngine, find_engine
from precomp_games.chess.engines.searches import Iteration, Line, SearchResult
from precomp_games.chess.evaluation.policies import softmax
from precomp_games.chess.opponents.estimation import (
    Choice,
    choices_by_nodes,
    fit_engines,
    fit_nodes,
    fit_opponent,
    opponent_choices,
)
from tests.chess.test_preparation import SHALLOW, HashEngine


def simulated(rng: np.random.Generator, count: int, r: float, lapse: float, top_k: int = 3) -> list[Choice]:
    """Moves that are drawn as the model says, in positions with scores of all kinds."""
    choices = []
    for _ in range(count):
        legal = int(rng.integers(2, 40))
        lines = min(top_k, legal)
        scores = sorted((int(s) for s in rng.exponential(40.0, lines)), reverse=True)
        if rng.random() < 0.05:
            scores[0] = 99_990  # a mate
        odds = (1.0 - lapse) * softmax(scores, r)
        odds = np.append(odds + lapse / legal, lapse * (legal - lines) / legal)
        # What rng.choice draws, in a third of its time.
        up_to = np.cumsum(odds / odds.sum())
        drawn = int(np.searchsorted(up_to / up_to[-1], rng.random(), side="right"))
        choices.append(Choice(tuple(scores), drawn if drawn < lines else None, legal))
    return choices


def log_likelihood(choices: list[Choice], r: float, lapse: Any) -> Any:
    """Move by move, as the model is written down; of an array of lapses, an array."""
    total = 0.0
    for choice in choices:
        if choice.legal > 1:
            odds = softmax(choice.scores_cp, r)
            p = 0.0 if choice.played is None else (1.0 - lapse) * odds[choice.played]
            total += choice.count * np.log(p + lapse / choice.legal)
    return total


@pytest.mark.parametrize(("r", "lapse"), [(25.0, 0.1), (5.0, 0.0)])
@pytest.mark.test_all("a frequency of many draws")
def test_intervals_hold_as_often_as_they_say(r: float, lapse: float) -> None:
    rng, runs = np.random.default_rng(7), 200
    fits = [fit_opponent(simulated(rng, 150, r, lapse)) for _ in range(runs)]
    held = sum(fit.interval[0] <= r <= fit.interval[1] for fit in fits)
    # 190 on average with a standard deviation of 3.1; four of them either way.
    assert 178 <= held <= 200
    narrow = [fit_opponent(simulated(rng, 150, r, lapse), confidence=0.5).interval for _ in range(runs)]
    assert 72 <= sum(low <= r <= high for low, high in narrow) <= 128  # 100 on average
    assert np.median([fit.temperature_cp for fit in fits]) == pytest.approx(r, rel=0.1)
    assert np.mean([fit.lapse for fit in fits]) == pytest.approx(lapse, abs=0.03)


def test_the_fit_is_the_maximum() -> None:
    choices = simulated(np.random.default_rng(3), 400, 30.0, 0.05)
    choices.append(Choice((50,), 0, 1))  # says nothing
    fit = fit_opponent(choices)
    assert (fit.moves, fit.positions, fit.top_k, fit.confidence) == (400, 400, 3, 0.95)
    assert fit.outside == sum(choice.played is None for choice in choices)
    assert fit.log_likelihood == pytest.approx(log_likelihood(choices, fit.temperature_cp, fit.lapse))
    assert fit.bits == pytest.approx(-fit.log_likelihood / 400 / math.log(2.0))
    for r in (0.8, 0.95, 1.05, 1.25):
        for lapse in (0.5, 1.0, 1.5):
            other = log_likelihood(choices, r * fit.temperature_cp, lapse * fit.lapse)
            assert other < fit.log_likelihood + 1e-9
    uniform = -sum(math.log(choice.legal) for choice in choices)
    assert fit.uniform_log_likelihood == pytest.approx(uniform) and uniform < fit.log_likelihood
    # At the interval's ends the best lapse leaves the likelihood lower by 1.92, half of 3.84.
    for end in fit.interval:
        best = log_likelihood(choices, end, np.linspace(0.0, 0.2, 2001)[1:]).max()
        assert fit.log_likelihood - best == pytest.approx(1.9207, abs=2e-3)


def test_counts_are_repetitions() -> None:
    choices = simulated(np.random.default_rng(4), 50, 30.0, 0.05)
    often = [dataclasses.replace(choice, count=1 + k % 3) for k, choice in enumerate(choices)]
    spelled = [choice for k, choice in enumerate(choices) for _ in range(1 + k % 3)]
    one, other = fit_opponent(often), fit_opponent(spelled)
    assert one.temperature_cp == pytest.approx(other.temperature_cp, rel=1e-4)
    assert (one.moves, one.outside) == (other.moves, other.outside)
    assert (one.positions, other.positions) == (50, len(spelled))


def test_players_at_the_ends() -> None:
    scores = [(30, 20, 5), (80, 10, 0), (7, 6, 5), (0, -50, -90)]
    best = fit_opponent([Choice(s, 0, 30, 20) for s in scores])  # always the best move
    assert best.interval[0] == 0.0 and best.interval[1] < 1.0 and best.lapse < 1e-9
    anything = fit_opponent([Choice(s, k, 3, 20) for s in scores for k in range(3)])
    assert anything.interval[1] == math.inf
    # Whoever prefers the worst of them is as near to that as can be; most moves are lapses.
    elsewhere = fit_opponent([Choice(s, None, 30, 20) for s in scores])
    assert elsewhere.lapse == pytest.approx(1.0) and elsewhere.outside == elsewhere.moves == 80
    assert elsewhere.interval == (0.0, math.inf)
    assert elsewhere.log_likelihood == pytest.approx(elsewhere.uniform_log_likelihood)


def test_nothing_to_fit() -> None:
    for nothing in ([], [Choice((5,), 0, 1)], [Choice((5,), 0, 30)]):
        with pytest.raises(ValueError, match=r"fit_opponent\(\): expected choices in positions with two"):
            fit_opponent(nothing)


def test_choices_are_what_the_engine_says() -> None:
    engine = HashEngine()
    epd = chess.Board().epd()
    lines = engine.result(epd, SHALLOW, 30).lines
    moves = {(epd, lines[1].move): 3, (epd, lines[-1].move): 1}
    first, second = opponent_choices(engine, SHALLOW, 4, moves)
    scores = tuple(line.cp for line in lines[:4])
    assert first == Choice(scores, 1, 20, 3) and second == Choice(scores, None, 20, 1)
    assert engine.asked == [(epd, "nodes=1000", 4)]  # once


def test_a_mixture_of_engines_is_found_again() -> None:
    rng, weights = np.random.default_rng(5), np.array([0.3, 0.6])
    shallow, deep = [], []
    for _ in range(2000):
        scores = [sorted((int(s) for s in rng.exponential(60.0, 4)), reverse=True) for _ in range(2)]
        ranks = [rng.permutation(4), rng.permutation(4)]  # which move has each score
        who = rng.random()
        own = None if who >= weights.sum() else int(who >= weights[0])
        move = 0 if own is None else ranks[own][rng.choice(4, p=softmax(scores[own], (20.0, 40.0)[own]))]
        move = int(rng.integers(4)) if own is None else int(move)
        for said, score, rank in zip((shallow, deep), scores, ranks, strict=True):
            said.append(Choice(tuple(score), rank.tolist().index(move), 4))
    fit = fit_engines({1000: shallow, 5000: deep}, (20.0, 40.0))
    assert fit.lapse + sum(fit.weights.values()) == pytest.approx(1.0)
    assert sum(w for (n, _), w in fit.weights.items() if n == 1000) == pytest.approx(0.3, abs=0.06)
    assert sum(w for (n, _), w in fit.weights.items() if n == 5000) == pytest.approx(0.6, abs=0.06)
    assert fit.moves == 2000 and fit.top_k == 4

    def bits(mixed: dict[tuple[int, float], float], epsilon: float) -> float:
        odds = np.full(2000, epsilon / 4)
        for (nodes, r), weight in mixed.items():
            said = shallow if nodes == 1000 else deep
            odds += weight * np.array([softmax(c.scores_cp, r)[c.played] for c in said])
        return float(-np.log2(odds).mean())

    assert fit.bits == pytest.approx(bits(dict(fit.weights), fit.lapse))
    for name in fit.weights:  # no other weights fit better
        less = {other: w * (0.98 if other == name else 1.0) for other, w in fit.weights.items()}
        assert bits(less, 1.0 - sum(less.values())) > fit.bits - 1e-9
    assert "uci(nodes=1000,r=" in fit.spec and fit.spec.endswith(f"per=move),epsilon={fit.lapse:.3f})")
    assert "1,000 nodes" in str(fit)
    lapses = [Choice((50, 0), None, 30)] * 3  # moves that no engine looks at
    assert fit_engines({1000: lapses}, (20.0,)).spec == "uniform"
    for wrong in ({}, {1000: shallow, 5000: deep[:-1]}, {1000: []}):
        with pytest.raises(ValueError, match="expected choices of the same moves"):
            fit_engines(wrong, (20.0,))


# -- how far it searches -----------------------------------------------------------------------------------


class Searches:
    """What searches of some positions say at each limit, and the moves that one of them drew."""

    def __init__(self, rng: np.random.Generator, positions: int) -> None:
        self._jumps = np.exp(
            rng.uniform(np.log(100), np.log(6000), (positions, 8))
        )  # where an iteration ends
        self._scores = rng.normal(0.0, 30.0, (positions, 9, 2))
        self.played: list[int] = [0] * positions

    def scores(self, nodes: int) -> list[tuple[int, ...]]:
        """Of the two best moves, which have the same names at all limits."""
        depth = (self._jumps < nodes).sum(axis=1)
        return [tuple(map(round, row)) for row in self._scores[np.arange(len(depth)), depth].tolist()]

    def draw(self, rng: np.random.Generator, nodes: int, r: float) -> None:
        """Moves of an engine with these nodes and this r."""
        self.played = [int(rng.choice(2, p=softmax(scores, r))) for scores in self.scores(nodes)]

    def log_likelihood(self, nodes: int, r: Any) -> Any:
        """At each of several r, with the lapse that is best of some."""
        gaps = np.array(self.scores(nodes), float)
        gaps -= gaps[np.arange(len(gaps)), self.played][:, np.newaxis]
        odds = 1.0 / np.exp(gaps[:, :, np.newaxis] / r).sum(axis=1)
        lapses = np.linspace(0.0, 0.1, 11)[:, np.newaxis, np.newaxis]
        return np.log((1.0 - lapses) * odds + lapses / 20).sum(axis=1).max(axis=0)

    def choices(self, nodes: int) -> list[Choice]:
        """What `choices_by_nodes` gives."""
        return [Choice(s, move, 20) for s, move in zip(self.scores(nodes), self.played, strict=True)]


@pytest.mark.seconds("a maximum over two numbers each time")
def test_regions_of_nodes_and_r_hold(cases: Callable[[int], int]) -> None:
    """The true pair is in the region as often as it says, and outside it are only less likely ones."""
    rng, held, runs = np.random.default_rng(5), 0, cases(16)
    for number in range(runs):
        searches = Searches(rng, 150)
        nodes, r = round(math.exp(rng.uniform(*np.log([400, 2000])))), math.exp(rng.uniform(*np.log([5, 60])))
        searches.draw(rng, nodes, r)
        found = fit_nodes(searches.choices, 300, 3000)
        assert found.explained and found.contains(found.nodes, found.fit.temperature_cp)
        held += found.contains(nodes, r)
        if number < 2:
            rows = found.region[:: max(1, len(found.region) // 3)]
            heights = [searches.log_likelihood(n, np.array(ends)) for n, *ends in rows]
            floor = float(np.mean(heights))
            assert np.concatenate(heights) == pytest.approx(floor, abs=0.02)
            # What is likelier than the ends has 95 % of all there is; limits every 0.4 %, r every 8 %.
            grid, limits = np.geomspace(2.0, 200.0, 60), np.geomspace(300, 3000, 576).round().astype(int)
            found_at = np.stack([searches.log_likelihood(n, grid) for n in limits.tolist()])
            likely = np.exp(found_at - floor)
            assert likely[found_at >= floor].sum() / likely.sum() == pytest.approx(0.95, abs=0.04)
    assert held >= runs - 3  # 15.2 of 16 on average, with a standard deviation of 0.87


def test_limits_with_other_temperatures_are_compared_at_their_best() -> None:
    """Of many moves a likelihood is so narrow that it rises a lot between the points of a grid."""
    rng = np.random.default_rng(8)
    searches = Searches(rng, 200)
    scores, choices = searches.scores(1000), {}
    # r = 20 lies amid two points of the grid, and 20 times 0.794 on one of them.
    for nodes, factor in ((900, 1.0), (1100, 0.794)):
        other = [tuple(round(factor * s) for s in each) for each in scores]
        if factor < 1.0:
            other[0] = (other[0][0] + 12, other[0][1])
        first = [float(softmax(each, 20.0)[0]) for each in scores]
        choices[nodes] = [
            Choice(s, move, 20, max(1, round(100 * (p if move == 0 else 1.0 - p))))
            for s, p in zip(other, first, strict=True)
            for move in (0, 1)
        ]
    found = fit_nodes(lambda nodes: choices[900 if nodes < 1000 else 1100], 900, 1100)
    fits = {nodes: fit_opponent(each) for nodes, each in choices.items()}
    assert 0.5 < fits[900].log_likelihood - fits[1100].log_likelihood < 12.0
    assert found.nodes < 1000 and found.fit.log_likelihood == pytest.approx(fits[900].log_likelihood)


def test_an_engine_of_another_kind_is_told() -> None:
    rng = np.random.default_rng(6)
    searches = Searches(rng, 150)
    searches.played = [int(move) for move in rng.integers(0, 2, 150)]
    choices = [dataclasses.replace(c, played=None if k % 10 == 0 else c.played) for k, c in
               enumerate(searches.choices(1000))]  # fmt: skip
    assert not fit_nodes(lambda nodes: choices, 1000, 1000).explained
    searches.draw(rng, 1000, 20.0)
    assert fit_nodes(searches.choices, 1000, 1000).explained
    with pytest.raises(ValueError, match="least_nodes to be at most most_nodes, got 3 and 2"):
        fit_nodes(searches.choices, 3, 2)
    with pytest.raises(ValueError, match="two or more moves to compare, got none"):
        fit_nodes(lambda nodes: [], 2, 3)


@pytest.mark.engine
def test_one_search_for_all_limits() -> None:
    epds = [
        chess.Board().epd(),
        chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3").epd(),
    ]
    with EnginePool(find_engine(), workers=1) as pool:
        engine = StoredEngine(EvaluationStore(":memory:"), pool)
        moves = {(epd, move): 1 for epd in epds for move in ("b1c3", "d2d4")}
        at = choices_by_nodes(engine, 4000, 3, moves)
        for nodes in (500, 1500, 4000):
            assert at(nodes) == opponent_choices(engine, SearchLimit(nodes=nodes), 3, moves)


def test_an_iteration_that_ends_right_behind_a_limit_may_count() -> None:
    """A search with the limit itself says whether it does, where only then the move was found."""

    class Engine:
        """Ends iterations after 400 and 520 nodes, and the second of them with any limit from 500 on."""

        engine_id = "Late 1"

        def __init__(self) -> None:
            self.limits: list[int | None] = []

        def search(self, epds: list[str], limit: SearchLimit, multipv: int = 1, **_: Any) -> Any:
            assert limit.nodes is not None
            self.limits.append(limit.nodes)
            said = (Iteration(1, 400, lines[0]), Iteration(2, 520, lines[1]))
            late = limit.nodes >= 500
            return [SearchResult(lines[late], 1 + late, limit.nodes, iterations=said) for _ in epds]

    lines = (
        (Line("e2e4", 30, None), Line("d2d4", 20, None)),
        (Line("c2c4", 40, None), Line("e2e4", 30, None)),
    )
    engine = Engine()
    at = choices_by_nodes(engine, 1000, 2, {(chess.Board().epd(), "c2c4"): 1})
    assert [at(nodes)[0].played for nodes in (450, 490, 510, 900)] == [None, None, 0, 0]
    assert engine.limits == [1000, 490, 510]
    at = choices_by_nodes(engine, 1000, 2, {(chess.Board().epd(), "e2e4"): 1})
    assert [at(nodes)[0].played for nodes in (450, 510)] == [0, 0]
    assert engine.limits == [1000, 490, 510, 1000]
