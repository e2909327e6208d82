"""Distrust fitted to a person's games: by the formula, on games written here."""

import math

import chess
import pytest

from precomp_games.chess import ChessGame, games_policy
from precomp_games.chess.data.game_records import position_hash
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
def files(tmp_path):
    """Games of "Them" with Black: earlier ones, and later ones."""
    for name, lines in (("earlier", EARLIER), ("later", LATER)):
        text = "".join(game(line, "Us", "Them", Round=str(k)) for k, line in enumerate(lines))
        (tmp_path / f"{name}.pgn").write_text(text)
    return tmp_path


def model_of(files, alpha):
    return games_policy(ChessGame(), files / "earlier.pgn", "Them", alpha=alpha)


def replies_after(san, model):
    """Return (probability, value to White) by reply, and how many games there are."""
    state = ChessGame().new_initial_state()
    board = chess.Board()
    state.apply_action(next(a for a in state.legal_actions() if state.action_to_string(0, a) == san))
    board.push_san(san)
    (row,) = model.action_probabilities_batch([state])
    values = Worth().evaluate_batch([state.child(action) for action in row])
    by_name = {state.action_to_string(1, a): (p, v) for (a, p), v in zip(row.items(), values, strict=True)}
    games = sum(model.counts.weights[model.counts.keys == position_hash(board)].tolist())
    return by_name, games


def test_distrust_is_what_was_missing_of_what_the_worst_would_take(files):
    alpha = 0.5
    model = model_of(files, alpha)
    missing, most = [], []
    for line in LATER:
        first, reply = (word.removeprefix("1.") for word in line.split()[1:])
        row, games = replies_after(first, model)
        expected = sum(p * v for p, v in row.values())
        missing.append(expected - row[reply][1])
        most.append(alpha / (games + alpha) * (expected - min(v for _, v in row.values())))
    found = fit_distrust(model, GameSelection(files / "later.pgn", "Them").table(), Worth())
    share = sum(missing) / sum(most)
    assert found.share == pytest.approx(min(max(share, 0.0), 1.0))
    error = math.sqrt(sum((m - share * w) ** 2 for m, w in zip(missing, most, strict=True))) / sum(most)
    assert found.standard_error == pytest.approx(error)
    assert (found.moves, found.missing) == (len(LATER), pytest.approx(sum(missing) / len(LATER)))
    assert f"{found.share:.2f} +- " in str(found)


def test_counts_alone_have_nothing_to_distrust(files):
    model = model_of(files, 0.0)
    games = GameSelection(files / "earlier.pgn", "Them").table()
    with pytest.raises(ValueError, match="expected table to have moves among several replies, got 4 moves"):
        fit_distrust(model, games, Worth())
