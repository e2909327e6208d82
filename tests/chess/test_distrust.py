"""Distrust fitted to a person's games: by the formula, on games written here."""

import math

import pytest

from precomp_games.chess import ChessGame, action_of, games_policy
from precomp_games.chess.data.move_counts import GameSelection
from precomp_games.chess.model.people import fit_distrust
from tests.oracles.pgn import game

EARLIER = ["1. e4 e5", "1. e4 e5", "1. e4 c5", "1. d4 d5"]
LATER = ["1. e4 c5", "1. e4 d5", "1. c4 e5"]


class Worth:
    """A value for each position, to White."""

    def evaluate_batch(self, states):
        return [0.5 + 0.4 * math.sin(sum(state.history())) for state in states]


@pytest.fixture
def games(tmp_path):
    """Return a function from lines to a file with games of "Them" with Black."""

    def write(*lines):
        text = "".join(game(line, "Us", "Them", Round=str(k)) for k, line in enumerate(lines))
        (tmp_path / f"{len(lines)}.pgn").write_text(text)
        return tmp_path / f"{len(lines)}.pgn"

    return write


def replies_after(san, model):
    """Return (probability, value to White) by reply, and how many games there are."""
    state = ChessGame().new_initial_state()
    state.apply_action(action_of(state.board.parse_san(san)))
    row = model.action_probabilities(state)
    by_name = {}
    for action, p in row.items():
        by_name[state.action_to_string(action)] = (p, *Worth().evaluate_batch([state.child(action)]))
    return by_name, sum(model.counts.at(state.board).values())


def test_distrust_is_what_was_missing_of_what_the_worst_would_take(games):
    alpha, missing, most = 0.5, [], []
    model = games_policy(ChessGame(), games(*EARLIER), "Them", alpha=alpha)
    for line in LATER:
        first, reply = (word.removeprefix("1.") for word in line.split()[1:])
        row, count = replies_after(first, model)
        expected = sum(p * v for p, v in row.values())
        missing.append(expected - row[reply][1])
        most.append(alpha / (count + alpha) * (expected - min(v for _, v in row.values())))
    found = fit_distrust(model, GameSelection(games(*LATER), "Them").table(), Worth())
    share = sum(missing) / sum(most)
    assert found.share == pytest.approx(min(max(share, 0.0), 1.0))
    error = math.sqrt(sum((m - share * w) ** 2 for m, w in zip(missing, most, strict=True))) / sum(most)
    assert found.standard_error == pytest.approx(error)
    assert (found.moves, found.missing) == (len(LATER), pytest.approx(sum(missing) / len(LATER)))
    assert f"{found.share:.2f} +- " in str(found)


def test_counts_alone_have_nothing_to_distrust(games):
    model = games_policy(ChessGame(), games(*EARLIER), "Them", alpha=0.0)
    with pytest.raises(ValueError, match="expected table to have moves among several replies, got 4 moves"):
        fit_distrust(model, GameSelection(games(*EARLIER), "Them").table(), Worth())
