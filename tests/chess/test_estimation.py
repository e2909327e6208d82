"""Estimates of a player's randomness and of a model's distrust: by formulas, and of simulated moves."""

import dataclasses
import math
from typing import Any

import chess
import numpy as np
import pytest

from precomp_games.chess import ChessGame, action_of, games_policy
from precomp_games.chess.data.move_counts import GameSelection
from precomp_games.chess.model.engine_policies import softmax
from precomp_games.chess.model.estimation import Choice, fit_engines, fit_opponent, opponent_choices
from precomp_games.chess.model.people import fit_distrust, read_person
from tests.chess.test_engine import LIMIT
from tests.oracles.engines import HashEngine
from tests.oracles.pgn import game


def simulated(rng: np.random.Generator, count: int, r: float, lapse: float, top_k: int = 3) -> list[Choice]:
    """Return moves drawn by the model, in positions with scores of all kinds."""
    choices = []
    for _ in range(count):
        legal = int(rng.integers(2, 40))
        lines = min(top_k, legal)
        scores = sorted((int(s) for s in rng.exponential(40.0, lines)), reverse=True)
        if rng.random() < 0.05:
            scores[0] = 99_990  # a mate
        odds = (1.0 - lapse) * softmax(scores, r)
        odds = np.append(odds + lapse / legal, lapse * (legal - lines) / legal)
        drawn = int(rng.choice(len(odds), p=odds / odds.sum()))
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


def test_the_fit_is_the_maximum() -> None:
    choices = simulated(np.random.default_rng(3), 400, 30.0, 0.05)
    choices.append(Choice((50,), 0, 1))  # carries no information
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
    for confidence, lower in ((0.95, 1.9207), (0.5, 0.2275)):
        for end in fit_opponent(choices, confidence=confidence).interval:
            best = log_likelihood(choices, end, np.linspace(0.0, 0.2, 2001)[1:]).max()
            assert fit.log_likelihood - best == pytest.approx(lower, abs=2e-3)


def test_counts_are_repetitions() -> None:
    choices = simulated(np.random.default_rng(4), 50, 30.0, 0.05)
    often = [dataclasses.replace(choice, count=1 + k % 3) for k, choice in enumerate(choices)]
    spelled = [choice for k, choice in enumerate(choices) for _ in range(1 + k % 3)]
    one, other = fit_opponent(often), fit_opponent(spelled)
    assert one.temperature_cp == pytest.approx(other.temperature_cp, rel=1e-4)
    assert (one.moves, one.outside) == (other.moves, other.outside)
    assert (one.positions, other.positions) == (50, len(spelled))


def test_players_at_the_ends_and_of_another_kind() -> None:
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
    for nothing in ([], [Choice((5,), 0, 1)], [Choice((5,), 0, 30)]):
        with pytest.raises(ValueError, match=r"fit_opponent\(\): expected choices in positions with two"):
            fit_opponent(nothing)
    choices = simulated(np.random.default_rng(6), 150, 20.0, 0.0)
    assert fit_opponent(choices).explained
    for k, choice in enumerate(choices):
        if k % 10 == 0 and choice.legal > 3:
            choices[k] = dataclasses.replace(choice, played=None)
    assert not fit_opponent(choices).explained


def test_choices_are_what_the_engine_says() -> None:
    engine = HashEngine()
    epd = chess.Board().epd()
    lines = engine.result(epd, LIMIT, 30).lines
    moves = {(epd, lines[1].move): 3, (epd, lines[-1].move): 1}
    first, second = opponent_choices(engine, LIMIT, 4, moves)
    scores = tuple(line.cp for line in lines[:4])
    assert first == Choice(scores, 1, 20, 3) and second == Choice(scores, None, 20, 1)
    assert engine.asked == [(epd, "nodes=1000", 4)]  # once


def test_a_mixture_of_engines_is_found_again() -> None:
    rng, weights, temperatures = np.random.default_rng(5), np.array([0.3, 0.6, 0.1]), (20.0, 40.0)
    choices: dict[int, list[Choice]] = {1000: [], 5000: []}
    for who in rng.choice(3, p=weights, size=2000).tolist():
        scores = [sorted((int(s) for s in rng.exponential(60.0, 4)), reverse=True) for _ in range(2)]
        ranks = [rng.permutation(4).tolist() for _ in range(2)]  # which move has each score
        odds = softmax(scores[who], temperatures[who]) if who < 2 else None
        rank = rng.choice(4, p=odds)
        move = ranks[who % 2][rank]
        for found, score, own in zip(choices.values(), scores, ranks, strict=True):
            found.append(Choice(tuple(score), own.index(move), 4))
    fit = fit_engines(choices, temperatures)
    assert fit.lapse + sum(fit.weights.values()) == pytest.approx(1.0)
    for nodes, weight in zip(choices, weights, strict=False):
        assert sum(w for (n, _), w in fit.weights.items() if n == nodes) == pytest.approx(weight, abs=0.06)
    assert fit.moves == 2000 and fit.top_k == 4

    def bits(mixed: dict[tuple[int, float], float], epsilon: float) -> float:
        odds = np.full(2000, epsilon / 4)
        for (nodes, r), weight in mixed.items():
            odds += weight * np.array([softmax(c.scores_cp, r)[c.played] for c in choices[nodes]])
        return float(-np.log2(odds).mean())

    assert fit.bits == pytest.approx(bits(dict(fit.weights), fit.lapse))
    for name in fit.weights:  # no other weights fit better
        less = {other: w * (0.98 if other == name else 1.0) for other, w in fit.weights.items()}
        assert bits(less, 1.0 - sum(less.values())) > fit.bits - 1e-9
    assert "uci(nodes=1000,r=" in fit.spec and fit.spec.endswith(f"per=move),epsilon={fit.lapse:.3f})")
    assert "1,000 nodes" in str(fit)
    lapses = [Choice((50, 0), None, 30)] * 3  # moves that no engine looks at
    assert fit_engines({1000: lapses}, (20.0,)).spec == "uniform"
    for wrong in ({}, {1000: lapses, 5000: lapses[:-1]}, {1000: []}):
        with pytest.raises(ValueError, match="expected choices of the same moves"):
            fit_engines(wrong, (20.0,))


# -- distrust, by the formula, on games written here --------------------------------------------------------

EARLIER = ["1. e4 e5", "1. e4 e5", "1. e4 c5", "1. d4 d5"]
LATER = ["1. e4 c5", "1. e4 d5", "1. c4 e5"]


class Worth:
    """A value for each position, to White."""

    def evaluate_batch(self, states):
        return [0.5 + 0.4 * math.sin(sum(state.history())) for state in states]


def written(folder, lines):
    """Return a file with these games of "Them" with Black."""
    path = folder / f"{len(lines)}.pgn"
    path.write_text("".join(game(line, "Us", "Them", Round=str(k)) for k, line in enumerate(lines)))
    return path


def replies_after(san, model):
    """Return (probability, value to White) by reply, and how many games there are."""
    state = ChessGame().new_initial_state()
    state.apply_action(action_of(state.board.parse_san(san)))
    row = model.action_probabilities(state)
    by_name = {}
    for action, p in row.items():
        by_name[state.action_to_string(action)] = (p, *Worth().evaluate_batch([state.child(action)]))
    return by_name, sum(model.counts.at(state.board).values())


def test_distrust_is_what_was_missing_of_what_the_worst_would_take(tmp_path):
    alpha, missing, most = 0.5, [], []
    model = games_policy(ChessGame(), written(tmp_path, EARLIER), "Them", alpha=alpha)
    for line in LATER:
        first, reply = (word.removeprefix("1.") for word in line.split()[1:])
        row, count = replies_after(first, model)
        expected = sum(p * v for p, v in row.values())
        missing.append(expected - row[reply][1])
        most.append(alpha / (count + alpha) * (expected - min(v for _, v in row.values())))
    found = fit_distrust(model, GameSelection(written(tmp_path, LATER), "Them").table(), Worth())
    share = sum(missing) / sum(most)
    assert found.share == pytest.approx(min(max(share, 0.0), 1.0))
    error = math.sqrt(sum((m - share * w) ** 2 for m, w in zip(missing, most, strict=True))) / sum(most)
    assert found.standard_error == pytest.approx(error)
    assert (found.moves, found.missing) == (len(LATER), pytest.approx(sum(missing) / len(LATER)))
    assert f"{found.share:.2f} +- " in str(found)


def test_counts_alone_have_nothing_to_distrust(tmp_path):
    model = games_policy(ChessGame(), written(tmp_path, EARLIER), "Them", alpha=0.0)
    with pytest.raises(ValueError, match="expected table to have moves among several replies, got 4 moves"):
        fit_distrust(model, GameSelection(written(tmp_path, EARLIER), "Them").table(), Worth())


def test_others_games_stand_behind_a_persons(tmp_path):
    own, others = tmp_path / "own.pgn", tmp_path / "others.pgn"
    own.write_text("".join(game("1. e4 e5", "A", "B", Date=f"{year}.??.??") for year in range(1980, 1990)))
    with_a = game("1. d4", "A", "C", Date="1981.??.??")
    others.write_text(with_a + "".join(game("1. c4", "C", "D", Date=f"{y}.??.??") for y in range(1980, 1990)))
    person = read_person(str(own), "A", str(others), 10)
    assert person.years.tolist() == list(range(1980, 1990))
    model, behind = person.policy(None), person.behind(None)
    start = ChessGame().new_initial_state()
    english, queens = (action_of(chess.Move.from_uci(move)) for move in ("c2c4", "d2d4"))
    row = behind.action_probabilities(start)
    assert row[english] > 0.5 > 20 * row[queens]  # without the person's own games
    assert model.prior.action_probabilities(start) == row
    assert "others.pgn" in person.spec(model, "uniform") and "others.pgn" not in model.spec("uniform")
    assert "before=1985" in person.behind(None, before=1985.0).spec("uniform")
