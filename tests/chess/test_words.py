"""Words for people: points in 100 games, guesses, opponents without specs, and names of openings."""

import chess
import pytest

from precomp_games.chess import PreparationSettings
from precomp_games.chess.model.played import Person
from precomp_games.chess.study import words
from precomp_games.chess.study.words import OpponentWords, often, unseen_words


def opponent(spec):
    return OpponentWords(PreparationSettings(opponent=spec), "SF")


_POINTS = "points in 100 games by position, +0.30 on the clock"
_HALVES = {move: 0.5**move for move in range(12)}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        *(
            (words.points(fraction), message)
            for fraction, message in (
                *((0.734, "73"), (0.0142, "1.4"), (0.0035, "0.35"), (-0.17, "−17"), (0.0, "0.00")),
                *((-1e-9, "0.00"), (1.0, "100")),
            )
        ),
        (words.more_points(0.17), "17 more points in 100 games"),
        (words.more_points(-0.0142), "1.4 fewer points in 100 games"),
        (words.parts_words(0.17, None), "17 more points in 100 games"),
        (words.SEEN.format(4), "seen in 4 of their games"),
        (unseen_words(0, 9, 0.0, 1.0), "none of 9 positions rests on guesses"),
        (unseen_words(1, 9, 0.1, 0.0), "1 of 9 positions rests on guesses"),
        (
            unseen_words(3, 9, 0.05, 0.2),
            "3 of 9 positions rest on guesses, with 25% of what the book adds",
        ),
        (
            unseen_words(3, 9, 0.3, 0.2),
            "3 of 9 positions rest on guesses, with all of what the book adds",
        ),
        *(
            (often(share), message)
            for share, message in (
                *((1.0, "every game"), (0.5, "50 of 100 games"), (0.02, "1 of 50 games")),
                *((0.0004, "1 of 2,500 games"), (0.0, "next to no game")),
            )
        ),
        (often(1.0, "cases"), "nearly every case"),
        (often(0.5, "cases"), "50 of 100 cases"),
        (
            words.why_words(0.02, 0.005, [("Nf3", -0.01)]),
            "It comes up in 1 of 50 games. Forgetting it costs 0.50 points in 100 games. Nf3 instead would "
            "bring 1.0.",
        ),
        (words.worth_words("Ann", 0.044, 0.003, 41), f"Against Ann: +4.4 {_POINTS}, for 41 positions"),
        (words.worth_words("", -0.044, 0.003, 1), f"Against the model: −4.4 {_POINTS}, for 1 position"),
        (words.limit_words("nodes=20000"), "20,000 nodes a move"),
        (words.limit_words("depth=9"), "9 plies deep"),
        # How long games stay in a book: at five moves at most, the last one with a game in 200 among them.
        *((words.coverage_words(dict.fromkeys(range(count), 1.0)), "") for count in (0, 1)),
        (words.coverage_words({1: 1.0, 2: 0.62}), "of 100 games 62 are still in the book at move 2"),
        (
            words.coverage_words(_HALVES),
            "of 100 games 50 are still in the book at move 1, 12 at move 3, 3 at move 5 and 1 at move 7",
        ),
        (words.versus_words("white", "Bob", None), "Bob with Black"),
        (words.versus_words("white", "Bob", Person("Bob", 1200)), "Bob with Black: 1,200 games"),
        (
            words.versus_words("black", "", Person("Bob", 1, 1990, 1990)),
            "The modeled opponent with White: 1 game, 1990",
        ),
    ],
)
def test_sentences(message, expected):
    assert message == expected


def test_opponents_are_described_without_a_spec():
    engines = (
        "mixture(a=uci(nodes=1000,r=10),b=uci(nodes=20000,r=20),c=uniform(),weights=of(a=1,b=2,c=1),per=move)"
    )
    of_games = "games(file=/a/k.pgn,player=Ann B"
    person = opponent(f"{of_games},fit=rolling,prior=games(file=o.pgn,prior={engines}))")
    assert person.title == "Ann B"
    assert person.source == (
        "Ann B's games; where they say little, games of everybody; where they say little, one of these for "
        "each move: 2 engines, SF, 1,000 nodes a move or 20,000 nodes a move, each plays one of its best "
        "moves, the better the likelier (r = 10, 20 cp); any legal move, each as likely"
    )
    assert person.replies == "Ann B's games; where they say little, games of others and engines"
    assert person.guess == "a guess: never seen, others play it or an engine thinks so"
    one = opponent(f"{of_games},prior=noisy(policy=uci(r=40,nodes=500),epsilon=0.1))")
    assert one.guess == "a guess: never seen, an engine thinks so" and one.unseen == "guesses"
    assert opponent(f"{of_games})").guess == "a guess: never seen"
    people = opponent(f"{of_games},prior=human(rating=1640))")
    assert people.seen(None) == "not in their games; people of their rating play it"
    assert people.unseen == "replies not in their games"
    usual = OpponentWords(PreparationSettings(), "SF")
    assert usual.title == "SF (1,000 nodes a move)" and usual.source == usual.replies
    for rating, message in (("1600", "1600"), ("abc", "unknown"), ("mixture(a=uniform)", "unknown")):
        assert opponent(f"human(rating={rating})").title == f"players rated about {message}"


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
    found = opponent(spec)
    for message in (found.title, found.source, found.replies):
        assert message and not set("/=()") & set(message.replace("(r = 5 cp)", "")), message


def test_names_of_openings():
    board = chess.Board()
    assert words.opening_name(board) is None and words.opening_of(board, ()) == ""
    for san in ["Nf3", "d5", "c4", "c6", "d4"]:
        board.push_san(san)
    assert words.opening_name(board) == "D11 Slav Defense: Modern Line"  # by another order of moves
    board.push_san("h5")
    assert words.opening_name(board) is None
    assert words.opening_of(chess.Board(), board.move_stack) == "D11 Slav Defense: Modern Line"
