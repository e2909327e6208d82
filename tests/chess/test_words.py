"""Words for people, and sentences about moves: their numbers are counted again, game by game."""

import dataclasses
from collections import defaultdict

import chess
import chess.engine
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import PreparationSettings
from precomp_games.chess.data.book import Book, BookExit, points
from precomp_games.chess.data.exits import mistakes
from precomp_games.chess.model.played import Person, ReplyGames
from precomp_games.chess.study import words
from precomp_games.chess.study.sentences import BookSentences
from precomp_games.chess.study.words import OpponentWords, often, unseen_words
from tests.oracles.chess_books import entry, evaluations_of, exits_of, random_books, uci
from tests.oracles.pages import page_with
from tests.properties import examples

# -- words -------------------------------------------------------------------------------------------------


def test_numbers_in_words():
    scores = {
        0.734: "73",
        0.0142: "1.4",
        0.0035: "0.35",
        -0.17: "−17",
        0.0: "0.00",
        -1e-9: "0.00",
        1.0: "100",
    }
    assert {score: points(score) for score in scores} == scores
    shares = {1.0: "every game", 0.5: "50 of 100 games", 0.02: "1 of 50 games", 0.0004: "1 of 2,500 games"}
    assert {share: often(share) for share in shares} == shares
    assert often(0.0) == "next to no game" and often(1.0, "cases") == "nearly every case"
    for message, expected in (
        (words.more_points(-0.0142), "1.4 fewer points in 100 games"),
        (words.parts_words(0.17, None), "17 more points in 100 games"),
        (unseen_words(0, 9, 0.0, 1.0), "none of 9 positions rests on guesses"),
        (unseen_words(1, 9, 0.1, 0.0), "1 of 9 positions rests on guesses"),
        (unseen_words(3, 9, 0.05, 0.2), "3 of 9 positions rest on guesses, with 25% of what the book adds"),
        (unseen_words(3, 9, 0.3, 0.2), "3 of 9 positions rest on guesses, with all of what the book adds"),
        (
            words.worth_words("", -0.044, 0.003, 1),
            "Against the model: −4.4 points in 100 games by position, +0.30 on the clock, for 1 position",
        ),
        (
            words.why_words(0.02, 0.005, [("Nf3", -0.01)]),
            "It comes up in 1 of 50 games. Forgetting it costs 0.50 points in 100 games. Nf3 instead would "
            "bring 1.0.",
        ),
        (words.limit_words("nodes=20000"), "20,000 nodes a move"),
        (words.limit_words("depth=9"), "9 plies deep"),
        # How long games stay in a book: at five moves at most, the last one with a game in 200 among them.
        *((words.coverage_words(dict.fromkeys(range(count), 1.0)), "") for count in (0, 1)),
        (words.coverage_words({1: 1.0, 2: 0.62}), "of 100 games 62 are still in the book at move 2"),
        (
            words.coverage_words({move: 0.5**move for move in range(12)}),
            "of 100 games 50 are still in the book at move 1, 12 at move 3, 3 at move 5 and 1 at move 7",
        ),
        (words.versus_words("white", "Bob", None), "Bob with Black"),
        (words.versus_words("white", "Bob", Person("Bob", 1200)), "Bob with Black: 1,200 games"),
        (
            words.versus_words("black", "", Person("Bob", 1, 1990, 1990)),
            "The modeled opponent with White: 1 game, 1990",
        ),
    ):
        assert message == expected


def opponent(spec):
    return OpponentWords(PreparationSettings(opponent=spec), "SF")


def test_opponents_are_described_without_a_spec():
    of_games = "games(file=/a/k.pgn,player=Ann B"
    engines = (
        "mixture(a=uci(nodes=1000,r=10),b=uci(nodes=20000,r=20),c=uniform(),weights=of(a=1,b=2,c=1),per=move)"
    )
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


# -- sentences ---------------------------------------------------------------------------------------------


def made_of(book, **facts):
    return page_with(book, [0.0] * len(book), 0.6, 0.5, spec="human(rating=1500)", **facts).made


def listed(texts, word="and"):
    return f" {word} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


class Counted:
    """The same sentences, by all games one after the other; each exit is one."""

    def __init__(self, made):
        self.made, self.known = made, {each.history: each for each in made.book.positions}
        self.mass, self.value = defaultdict(float), defaultdict(float)
        for game in made.exits:
            for ply in range(len(game.history) + 1):
                self.mass[game.history[:ply]] += game.reach
                self.value[game.history[:ply]] += game.reach * game.promised
        found = mistakes(made.book, made.exits, made.evaluations)  # see test_exits.py
        self.costs = {(*each.history, each.reply): each.costs for each in found}

    def name(self, history):
        board = self.made.book.start.copy()
        for move in history[:-1]:
            board.push(move)
        return board.variation_san(history[-1:])

    def after(self, history):
        return [each for each in self.mass if len(each) == len(history) + 1 and each[:-1] == history]

    def line(self, history):
        """From a position of the book on, by the likeliest replies that it answers."""
        line = []
        while history in self.known:
            best = max(self.known[history].moves, key=lambda play: play.probability).move
            answered = [each for each in self.after((*history, best)) if each in self.known]
            line.append(self.name((*history, best)))
            history = max(answered, key=lambda each: self.mass[each], default=None)
        return line[:3]

    def text(self, history):
        before, after, position = history[:-1], self.after(history), self.known[history[:-1]]
        share = {each: self.mass[each] / self.mass[history] for each in after}
        message = [f"You get here in {often(position.reach)}."] if before else []
        if len(position.moves) > 1:
            (own,) = (play.probability for play in position.moves if play.move == history[-1])
            message.append(f"Play {self.name(history)} in {often(own, 'cases')}.")
        expected = min(after, key=lambda each: (-share[each], each[-1].uci()))
        answered = [each for each in after if each in self.known]
        main = max(answered, key=share.get, default=None)
        plan = [] if main is None else self.line(main)
        usual = max(filter(self.costs.get, after), key=share.get, default=None)
        punished = ""
        if usual is not None:
            was, now = (self.made.evaluations[each].pov(self.made.book.side) for each in (before, usual))
            punished = f": it costs {self.costs[usual] / 100:.1f} pawns"
            if self.costs[usual] >= 5000:
                lets = was.is_mate() and was.mate() < 0
                punished = ": it lets their mate go" if lets else f": it allows mate in {now.mate()}"
            if usual != main or len(plan) < 2:
                punished += f", and you answer {self.line(usual)[0]}"
        lost = main is not None and expected not in self.known
        then = ", to which the book has no answer" if lost else punished if usual == expected else ""
        mark = "?" if usual == expected else ""
        message.append(f"Expect {self.name(expected)}{mark} in {often(share[expected], 'cases')}{then}.")
        if usual not in (None, expected):
            what = f"{self.name(usual)}?, in {often(share[usual], 'cases')}"
            message.append(f"The usual mistake is {what}{punished}.")
        if len(plan) > 1:
            message.append(f"Your plan against {self.name(main)} is {listed(plan)}.")
        if main is None:
            score = points(self.value[history] / self.mass[history])
            message.append(f"The book ends here. Analyst's score: {score} of 100.")
        rest = [each for each in after if each not in self.known and share[each] >= 0.05]
        rest = sorted((each for each in rest if each != expected), key=lambda each: -share[each])
        if main is not None and rest:
            names = list(map(self.name, rest))
            names[3:] = names[3:] if len(names) < 5 else [f"{len(names) - 3} others"]
            message.append(f"The book has no answer to {listed(names, 'or')}.")
        return " ".join(message)


@examples(80)
@given(random_books(25), st.integers(0, 2**32))
def test_each_number_is_that_of_all_games(book, seed):
    made = made_of(book, exits=exits_of(book, seed), evaluations=evaluations_of(book, seed))
    output, counted = BookSentences(made), Counted(made)
    for position in book.positions:
        for play in position.moves:
            history = (*position.history, play.move)
            assert output.of_move(history) == counted.text(history)
            for reply in counted.after(history):
                share = counted.mass[reply] / counted.mass[history]
                assert output.share(reply) == pytest.approx(share)
                assert output.is_mistake(reply) == (reply in counted.costs)
                assert output.of_reply(reply) == f"In {often(share, 'cases')}."


def test_nothing_unknown_is_printed():
    """Without exits, reach and the book's own line are known; without evaluations, no mistake is."""
    positions = {"": "e2e4", "e2e4 e7e5": "g1f3", "e2e4 c7c5": "g1f3", "e2e4 e7e5 g1f3 b8c6": "f1b5"}
    reaches = zip(positions.items(), (1.0, 0.5, 0.02, 0.3), strict=True)
    known = [entry(history, {move: 1.0}, reach) for (history, move), reach in reaches]
    book = Book(chess.Board(), chess.WHITE, known)
    output = BookSentences(made_of(book))
    assert output.of_move(uci("e2e4")) == "Your plan against 1...e5 is 2. Nf3 and 3. Bb5."
    assert output.of_move(uci("e2e4 c7c5 g1f3")) == "You get here in 1 of 50 games."
    assert output.of_move(uci("e2e4 e7e5 g1f3 b8c6 f1b5"), whole=False) == ""
    assert output.of_move(uci("d2d4")) == output.of_move(uci("e2e4 e7e5 b1c3")) == ""
    assert output.of_reply(uci("e2e4 e7e5")) == "" and output.share(uci("e2e4 e7e5")) is None
    assert not output.is_rare(uci("e2e4 c7c5"), 1.0) and not output.is_mistake(uci("e2e4 c7c5"))


def test_mates_ends_of_games_and_games_that_were_seen():
    known = {"": ("e2e4", 1.0), "e2e4 f7f6": ("d2d4", 0.5), "e2e4 e7e5": ("g1f3", 0.5)}
    known["e2e4 f7f6 d2d4 g7g5"] = "d1h5", 0.3
    positions = [entry(history, {move: 1.0}, reach) for history, (move, reach) in known.items()]
    mate = uci("e2e4 f7f6 d2d4 g7g5 d1h5")
    exits = [
        BookExit(mate, True, 0.3, 1.0),
        BookExit(uci("e2e4 f7f6 d2d4 d7d5"), False, 0.2, 0.5),
        BookExit(uci("e2e4 e7e5 g1f3 b8c6"), False, 0.5, 0.5),
    ]
    scores = {
        (): chess.engine.Mate(-3),
        uci("e2e4 f7f6"): chess.engine.Cp(80),
        mate[:4]: chess.engine.Mate(1),
    }
    evaluations = {moves: chess.engine.PovScore(score, chess.WHITE) for moves, score in scores.items()}
    made = made_of(Book(chess.Board(), chess.WHITE, positions), exits=exits, evaluations=evaluations)
    output = BookSentences(made)
    assert output.of_move(mate) == "You get here in 30 of 100 games. The game is over."
    assert output.of_move(mate[:3]) == (
        "You get here in 50 of 100 games. Expect 2...g5? in 60 of 100 cases: it allows mate in 1, and you "
        "answer 3. Qh5#. The book has no answer to 2...d5."
    )
    assert output.of_move(mate[:1]) == (
        "Expect 1...e5 in 50 of 100 cases. The usual mistake is 1...f6?, in 50 of 100 cases: it lets their "
        "mate go. Your plan against 1...f6 is 2. d4 and 3. Qh5#."
    )
    unvalued = [dataclasses.replace(each, promised=None) for each in exits]
    message = BookSentences(dataclasses.replace(made, exits=unvalued)).of_move(uci("e2e4 e7e5 g1f3"))
    assert (
        message == "You get here in 50 of 100 games. Expect 2...Nc6 in nearly every case. The book ends here."
    )
    games = {uci("e2e4 f7f6"): ReplyGames(3, ())}
    person = BookSentences(dataclasses.replace(made, person=Person("Bob", 8, 1990, 1999), games=games))
    assert person.of_reply(uci("e2e4 f7f6")) == "In 50 of 100 cases (seen in 3 of their games)."
    assert person.of_move(uci("e2e4")).startswith("Expect 1...e5 in 50 of 100 cases (a guess). The usual")
    assert "1...f6?, in 50 of 100 cases (seen in 3 of their games): it" in person.of_move(uci("e2e4"))
    engine = dataclasses.replace(made, settings=dataclasses.replace(made.settings, opponent=""))
    assert "?" not in BookSentences(engine).of_move(uci("e2e4"))
