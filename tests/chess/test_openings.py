"""Start positions of matches: which are near a value, and the files that match programs read."""

import io

import chess
import chess.pgn

from precomp_games.chess.play.match import MatchGame, MatchResult, openings_near, write_openings
from tests.oracles.chess_books import book_of, uci


def match_of(book, *games, inside=False):
    """A match of which each game leaves the book after a line, or ends, with a score of the book's side."""
    played = [
        MatchGame(k, uci(line), score, "too long", None if inside else len(line.split()))
        for k, (line, score) in enumerate((line, score) for line, scores in games for score in scores)
    ]
    return MatchResult(book, tuple(played))


def test_positions_are_those_near_the_value_whoever_left_there(tmp_path):
    white = book_of("| e2e4")
    black = book_of("e2e4 | e7e5", side=chess.BLACK)
    level, lost, seldom = "e2e4 e7e5", "e2e4 c7c5", "e2e4 e7e6"
    matches = [
        match_of(white, (level, [1.0, 0.0]), (lost, [0.0] * 5), (seldom, [0.5] * 3)),
        # Black's scores of the same position, and of one that transposes into another.
        match_of(black, (level, [0.5, 1.0, 0.0]), ("g1f3 g8f6 b1c3", [0.5, 0.5])),
        match_of(black, ("b1c3 g8f6 g1f3", [0.0, 1.0])),
        # Games that ended in their book are no starts.
        *(match_of(book, (level, [0.5] * 8), inside=True) for book in (white, black)),
    ]
    near = openings_near(matches, 0.5)
    assert [(tuple(each.board.move_stack), each.games, each.score) for each in near] == [
        (uci(level), 5, 0.5),
        (uci("g1f3 g8f6 b1c3"), 4, 0.5),
    ]
    assert [tuple(each.board.move_stack) for each in openings_near(matches, 0.05)] == [uci(lost)]
    assert openings_near(matches, 0.75) == []

    write_openings(near, tmp_path)
    lines = (tmp_path / "openings.epd").read_text().splitlines()
    for each, line in zip(near, lines, strict=True):
        board = chess.Board()
        message = board.set_epd(line)
        assert board.epd() == each.board.epd()
        assert message["c0"] == f"White scored 50 points in 100 games, by {each.games} of them"
    read = io.StringIO((tmp_path / "openings.pgn").read_text())
    for each in near:
        game = chess.pgn.read_game(read)
        assert game is not None and tuple(game.mainline_moves()) == tuple(each.board.move_stack)
        assert game.headers["Result"] == "*" and game.end().comment == str(each)
    assert chess.pgn.read_game(read) is None
