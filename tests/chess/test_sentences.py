"""Sentences about moves: their numbers are counted again, game by game, on small preparations."""

import dataclasses
from collections import defaultdict

import chess
import chess.engine
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess.data.book import Book, BookExit, points
from precomp_games.chess.data.exits import mistakes
from precomp_games.chess.model.played import Person, ReplyGames
from precomp_games.chess.study.sentences import BookSentences
from precomp_games.chess.study.words import often
from tests.oracles.chess_books import entry, evaluations_of, exits_of, random_books, uci
from tests.oracles.pages import page_with
from tests.properties import examples

PEOPLE = "human(rating=1500)"


def made_of(book, **facts):
    return page_with(book, [0.0] * len(book), 0.6, 0.5, spec=PEOPLE, **facts).made


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
    positions = [
        entry("", {"e2e4": 1.0}),
        entry("e2e4 e7e5", {"g1f3": 1.0}, 0.5),
        entry("e2e4 c7c5", {"g1f3": 1.0}, 0.02),
        entry("e2e4 e7e5 g1f3 b8c6", {"f1b5": 1.0}, 0.3),
    ]
    book = Book(chess.Board(), chess.WHITE, positions)
    output = BookSentences(made_of(book))
    assert output.of_move(uci("e2e4")) == "Your plan against 1...e5 is 2. Nf3 and 3. Bb5."
    assert output.of_move(uci("e2e4 c7c5 g1f3")) == "You get here in 1 of 50 games."
    assert output.of_move(uci("e2e4 e7e5 g1f3 b8c6 f1b5"), whole=False) == ""
    assert output.of_move(uci("d2d4")) == output.of_move(uci("e2e4 e7e5 b1c3")) == ""
    assert output.of_reply(uci("e2e4 e7e5")) == "" and output.share(uci("e2e4 e7e5")) is None
    assert not output.is_rare(uci("e2e4 c7c5"), 1.0) and not output.is_mistake(uci("e2e4 c7c5"))
    lost = [BookExit(uci("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6"), False, 1.0, None)]
    unvalued = BookSentences(made_of(book, exits=lost))
    message = "You get here in 30 of 100 games. Expect 3...a6 in nearly every case. The book ends here."
    assert unvalued.of_move(uci("e2e4 e7e5 g1f3 b8c6 f1b5")) == message


def test_mates_ends_of_games_and_games_that_were_seen():
    book = Book(
        chess.Board(),
        chess.WHITE,
        [
            entry("", {"e2e4": 1.0}),
            entry("e2e4 f7f6", {"d2d4": 1.0}, 0.5),
            entry("e2e4 f7f6 d2d4 g7g5", {"d1h5": 1.0}, 0.3),
            entry("e2e4 e7e5", {"g1f3": 1.0}, 0.5),
        ],
    )
    exits = [
        BookExit(uci("e2e4 f7f6 d2d4 g7g5 d1h5"), True, 0.3, 1.0),
        BookExit(uci("e2e4 f7f6 d2d4 d7d5"), False, 0.2, 0.5),
        BookExit(uci("e2e4 e7e5 g1f3 b8c6"), False, 0.5, 0.5),
    ]
    scores = {
        (): chess.engine.Cp(-30),
        uci("e2e4 f7f6"): chess.engine.Cp(80),
        uci("e2e4 e7e5"): chess.engine.Cp(30),
        uci("e2e4 f7f6 d2d4 g7g5"): chess.engine.Mate(1),
    }
    evaluations = {moves: chess.engine.PovScore(score, chess.WHITE) for moves, score in scores.items()}
    made = made_of(book, exits=exits, evaluations=evaluations)
    output = BookSentences(made)
    assert output.of_move(uci("e2e4 f7f6 d2d4")) == (
        "You get here in 50 of 100 games. Expect 2...g5? in 60 of 100 cases: it allows mate in 1, and you "
        "answer 3. Qh5#. The book has no answer to 2...d5."
    )
    assert (
        output.of_move(uci("e2e4 f7f6 d2d4 g7g5 d1h5"))
        == "You get here in 30 of 100 games. The game is over."
    )
    assert output.of_move(uci("e2e4")) == (
        "Expect 1...e5 in 50 of 100 cases. The usual mistake is 1...f6?, in 50 of 100 cases: it costs 1.1 "
        "pawns. Your plan against 1...f6 is 2. d4 and 3. Qh5#."
    )
    mated = evaluations | {(): chess.engine.PovScore(chess.engine.Mate(-3), chess.WHITE)}
    lost = BookSentences(dataclasses.replace(made, evaluations=mated))
    assert "1...f6?, in 50 of 100 cases: it lets their mate go. Your" in lost.of_move(uci("e2e4"))
    games = {uci("e2e4 f7f6"): ReplyGames(3, ())}
    person = BookSentences(dataclasses.replace(made, person=Person("Bob", 8, 1990, 1999), games=games))
    assert person.of_reply(uci("e2e4 f7f6")) == "In 50 of 100 cases (seen in 3 of their games)."
    assert person.of_move(uci("e2e4")).startswith("Expect 1...e5 in 50 of 100 cases (a guess). The usual")
    assert "1...f6?, in 50 of 100 cases (seen in 3 of their games): it" in person.of_move(uci("e2e4"))
    engine = dataclasses.replace(made, settings=dataclasses.replace(made.settings, opponent=""))
    assert "?" not in BookSentences(engine).of_move(uci("e2e4"))
