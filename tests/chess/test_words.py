"""Words for people: points in 100 games, guesses, opponents without specs, and names of openings."""

import chess
import pytest

from precomp_games.chess import PreparationSettings
from precomp_games.chess.model.played import Person
from precomp_games.chess.study.words import (
    SEEN,
    OpponentWords,
    coverage_words,
    limit_words,
    more_points,
    often,
    opening_name,
    opening_of,
    parts_words,
    points,
    unseen_words,
    versus_words,
    why_words,
    worth_words,
)

ENGINES = (
    "mixture(a=uci(nodes=1000,r=10),b=uci(nodes=20000,r=20),c=uniform(),weights=of(a=1,b=2,c=1),per=move)"
)


def opponent(spec):
    return OpponentWords(PreparationSettings(opponent=spec), "SF")


@pytest.mark.parametrize(
    ("fraction", "told"),
    [
        (0.734, "73"),
        (0.0142, "1.4"),
        (0.0035, "0.35"),
        (-0.17, "−17"),
        (0.0, "0.00"),
        (-1e-9, "0.00"),
        (1.0, "100"),
    ],
)
def test_points(fraction, told):
    assert points(fraction) == told


def test_sentences():
    assert more_points(0.17) == "17 more points in 100 games"
    assert more_points(-0.0142) == "1.4 fewer points in 100 games"
    assert SEEN.format(4) == "seen in 4 of their games"
    assert unseen_words(0, 9, 0.0, 1.0) == "none of 9 positions rests on guesses"
    assert unseen_words(3, 9, 0.05, 0.2) == "3 of 9 positions rest on guesses, with 25% of what the book adds"
    assert unseen_words(3, 9, 0.3, 0.2) == "3 of 9 positions rest on guesses, with all of what the book adds"
    assert unseen_words(1, 9, 0.1, 0.0) == "1 of 9 positions rests on guesses"
    assert [often(share) for share in (1.0, 0.5, 0.02, 0.0004, 0.0)] == [
        "every game",
        "50 of 100 games",
        "1 of 50 games",
        "1 of 2,500 games",
        "next to no game",
    ]
    assert [often(share, "cases") for share in (1.0, 0.5)] == ["nearly every case", "50 of 100 cases"]
    assert why_words(0.02, 0.005, [("Nf3", -0.01)]) == (
        "It comes up in 1 of 50 games. Forgetting it costs 0.50 points in 100 games. "
        "Nf3 instead would bring 1.0."
    )
    assert parts_words(0.17, None) == "17 more points in 100 games"
    told = "points in 100 games by position, +0.30 on the clock"
    assert worth_words("Ann", 0.044, 0.003, 41) == f"Against Ann: +4.4 {told}, for 41 positions"
    assert worth_words("", -0.044, 0.003, 1) == f"Against the model: −4.4 {told}, for 1 position"
    assert limit_words("nodes=20000") == "20,000 nodes a move" and limit_words("depth=9") == "9 plies deep"


def test_how_long_games_stay_in_a_book():
    """At five moves at most, the last one with a game in 200 among them."""
    assert [coverage_words({move: 1.0 for move in range(count)}) for count in (0, 1)] == ["", ""]
    assert coverage_words({1: 1.0, 2: 0.62}) == "of 100 games 62 are still in the book at move 2"
    halves = {move: 0.5**move for move in range(12)}
    assert (
        coverage_words(halves)
        == "of 100 games 50 are still in the book at move 1, 12 at move 3, 3 at move 5 and 1 at move 7"
    )


def test_who_plays_whom():
    assert versus_words("white", "Bob", None) == "Bob with Black"
    assert versus_words("black", "", Person("Bob", 1, 1990, 1990)) == (
        "The modeled opponent with White: 1 game, 1990"
    )
    assert versus_words("white", "Bob", Person("Bob", 1200)) == "Bob with Black: 1,200 games"


def test_opponents_are_described_without_a_spec():
    person = opponent(
        f"games(file=/a/k.pgn,player=Ann B,fit=rolling,prior=games(file=o.pgn,prior={ENGINES}))"
    )
    assert person.title == "Ann B"
    assert person.source == (
        "Ann B's games; where they say little, games of everybody; where they say little, one of these for "
        "each move: 2 engines, SF, 1,000 nodes a move or 20,000 nodes a move, each plays one of its best "
        "moves, the better the likelier (r = 10, 20 cp); any legal move, each as likely"
    )
    assert person.replies == "Ann B's games; where they say little, games of others and engines"
    assert person.guess == "a guess: never seen, others play it or an engine thinks so"
    one = opponent("games(file=k.pgn,player=Ann,prior=noisy(policy=uci(r=40,nodes=500),epsilon=0.1))")
    assert one.guess == "a guess: never seen, an engine thinks so"
    assert opponent("games(file=k.pgn,player=Ann)").guess == "a guess: never seen"
    assert one.unseen == "guesses"
    people = opponent("games(file=k.pgn,player=Ann,prior=human(rating=1640))")
    assert people.seen(None) == "not in their games; people of their rating play it"
    assert people.unseen == "replies not in their games"
    assert opponent("human(rating=1500)").title == "players rated about 1500"
    usual = OpponentWords(PreparationSettings(), "SF")
    assert usual.title == "SF (1,000 nodes a move)"
    assert usual.source == usual.replies


@pytest.mark.parametrize(
    "spec",
    [
        "uniform",
        "polyglot(file=/home/a/book.bin)",
        "uci(engine=/usr/games/stockfish,depth=4,plays=bestmove)",
        "mixture(a=uci(r=5),b=games(file=/home/a.pgn,player=Ann),weights=of(a=3,b=1))",
        "alpha_beta(depth=2)",
        "noisy(policy=polyglot(file=/home/b.bin),epsilon=0.2)",
    ],
)
def test_no_spec_and_no_path_is_shown(spec):
    words = opponent(spec)
    for told in (words.title, words.source, words.replies):
        assert told and not set("/=()") & set(told.replace("(r = 5 cp)", "")), told


def test_names_of_openings():
    board = chess.Board()
    assert opening_name(board) is None and opening_of(board, ()) == ""
    for san in ["Nf3", "d5", "c4", "c6", "d4"]:
        board.push_san(san)
    assert opening_name(board) == "D11 Slav Defense: Modern Line"  # by another order of moves
    board.push_san("h5")
    assert opening_name(board) is None
    assert opening_of(chess.Board(), board.move_stack) == "D11 Slav Defense: Modern Line"


def test_a_rating_that_is_none_is_told_as_unknown():
    for rating, told in (("1600", "1600"), ("abc", "unknown"), ("mixture(a=uniform)", "unknown")):
        settings = PreparationSettings(opponent=f"human(rating={rating})")
        assert OpponentWords(settings, "Stockfish").title == f"players rated about {told}"
