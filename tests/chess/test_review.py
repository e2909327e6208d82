"""Games beside a repertoire: each time that they leave it and come back, and what is called better."""

import chess
import pytest

from precomp_games.chess import PreparationSettings, read_games, read_repertoire
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.plan.review import AT_ITS_END, BY_OPPONENT, BY_OWNER, review_games
from tests.oracles.engines import HashEngine
from tests.oracles.pgn import after as epd_after
from tests.oracles.pgn import game

_WHITE = "1. c4 e5 (1... c5 2. g3) 2. Nc3 Nf6 (2... Nc6 3. g3) 3. g3 d5 4. cxd5 *\n"
_BLACK = "1. e4 c6 2. d4 (2. Nc3 d5) 2... d5 3. Nc3 dxe4 4. Nxe4 Bf5 *\n"


def reviewed(folder, moves, side=chess.WHITE, engine=None):
    """Return the review of one game."""
    (folder / "book.pgn").write_text(_WHITE if side else _BLACK)
    (folder / "game.pgn").write_text(game(moves, *(("Me", "Them") if side else ("Them", "Me"))))
    settings = PreparationSettings(player=0 if side else 1, max_plies=40, menu=1, top_k=3)
    policies = preparation_policies(settings, engine or HashEngine())
    games = dict(enumerate(read_games(folder / "game.pgn", "Me", setups=True), start=1))
    return review_games(read_repertoire(folder / "book.pgn", side), games, settings, policies, 5.0)


_WHO = {BY_OPPONENT: "they", BY_OWNER: "we", AT_ITS_END: "its end"}


@pytest.mark.parametrize(
    ("side", "moves", "left"),
    [
        # The opponent leaves, another order of moves comes back, and then we leave.
        (True, "1. c4 Nf6 2. Nc3 e5 3. e3 d5", "they Nc3 (2...e5), we e3"),
        # The book goes on where it came back, to its end.
        (True, "1. c4 Nf6 2. Nc3 e5 3. g3 d5 4. cxd5 Nxd5 5. Bg2", "they Nc3 (2...e5), its end Bg2"),
        # It comes back after two moves, and is left by the opponent once more.
        (True, "1. c4 Nf6 2. g3 e5 3. Nc3 Bb4 4. Bg2", "they g3 (3. Nc3), they Bg2"),
        # It comes back after a move of our own that the book does not have, and is left again.
        (True, "1. c4 e5 2. g3 Nf6 3. Nc3 d5 4. d3", "we g3 (3. Nc3), we d3"),
        (True, "1. c3 e6 2. c4 e5 3. d3", "we c3 (2...e5), we d3"),
        # Twice away and twice back.
        (True, "1. c4 Nf6 2. Nc3 e5 3. Nb1 Ng8 4. Nc3 Nf6", "they Nc3 (2...e5), we Nb1 (3...Ng8)"),
        # The record ends as it comes back, or in the book; a position with the other side to move is none.
        (True, "1. c4 Nf6 2. Nc3 e5", "they Nc3 (2...e5)"),
        (True, "1. c4 e5 2. Nc3 Nf6", ""),
        (True, "1. c3 e5 2. c4 Nf6 3. Nc3", "we c3"),
        (False, "1. d4 c6 2. e4 d5 3. Nc3 Nf6", "they c6 (2. e4), we Nf6"),
        (False, "1. Nc3 c6 2. e4 e6", "they c6 (2. e4), we e6"),
        (False, "1. Nc3 d5 2. e4 c6 3. d4 dxe4", "they d5 (3. d4)"),
    ],
)
def test_each_departure_and_each_return(tmp_path, side, moves, left):
    review = reviewed(tmp_path, moves, side)
    found = []
    for row in review.games:
        back = f" ({row['back']})" if row["back"] else ""
        found.append(f"{_WHO[row['left_by']]} {row['played']}{back}")
    assert ", ".join(found) == left
    assert sum(review.left_by.values()) == len(found)
    assert all(moves.startswith(row["after"]) or row["after"] == "(start)" for row in review.games)


def test_replies_count_again_after_a_return(tmp_path):
    review = reviewed(tmp_path, "1. c4 Nf6 2. Nc3 e5 3. g3 d5 4. cxd5 Nxd5 5. Bg2 Nb6")
    message = {(row["after"], row["reply"]) for row in review.replies}
    after = "1. c4 Nf6 2. Nc3 e5 3. g3"
    assert message == {("1. c4", "Nf6"), (after, "d5"), (f"{after} d5 4. cxd5", "Nxd5")}


class _Scores(HashEngine):
    """An engine that gives the start and the positions after moves the scores of a test."""

    def __init__(self, at_start, after):
        super().__init__()
        self.scores = {epd_after(""): at_start}
        for san, cp in after.items():
            board = chess.Board()
            board.push_san(san)
            self.scores[board.epd()] = {next(iter(board.legal_moves)).uci(): -cp}

    def result(self, epd, limit, multipv):
        found = super().result(epd, limit, multipv)
        lines = tuple(type(found.lines[0])(move, cp, None) for move, cp in self.scores.get(epd, {}).items())
        return type(found)(lines, 5, 5) if lines else found


@pytest.mark.parametrize(
    ("at_start", "after", "better", "sign"),
    [
        ({"b1c3": 40, "c2c4": 30}, {}, "", -1),  # the move that was played is the better one
        ({"c2c4": 40, "b1c3": 30}, {}, "c4", 1),
        ({"c2c4": 30, "b1c3": 30}, {}, "", 0),
        ({"e2e4": 50}, {"c4": 20, "Nc3": 60}, "", -1),
        ({"e2e4": 50}, {"c4": 60, "Nc3": 20}, "c4", 1),
        # A search of the position bounds a move that it does not have: it is no better.
        ({"e2e4": 50, "c2c4": 20}, {"c4": 60, "Nc3": 50}, "c4", 1),
        ({"e2e4": 50, "c2c4": 20}, {"c4": 40, "Nc3": 60}, "", -1),
        ({"e2e4": 50, "b1c3": 20}, {"c4": 60, "Nc3": 50}, "", 1),
    ],
)
def test_better_is_what_is_worth_more(tmp_path, at_start, after, better, sign):
    review = reviewed(tmp_path, "1. Nc3 e6", engine=_Scores(at_start, after))
    (row,) = review.games
    assert (row["book"], row["better"]) == ("c4", better)
    assert (row["cost"] > 0.0) - (row["cost"] < 0.0) == sign
    assert [each["learn"] for each in review.to_learn] == [better] * bool(better)
