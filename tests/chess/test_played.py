"""Played moves: those and the results of a player, of an engine's own games, and games behind replies."""

import collections
import dataclasses
import math
import random
from unittest import mock

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import (
    EnginePool,
    EvaluationStore,
    GameReport,
    StoredEngine,
    book_exits,
    move_of,
)
from precomp_games.chess.data import move_counts
from precomp_games.chess.data.game_records import position_hash
from precomp_games.chess.data.move_counts import GameSelection
from precomp_games.chess.model.played import (
    Person,
    PlayedGame,
    ReplyGames,
    engine_moves,
    pgn_moves,
    pgn_results,
    reply_games,
    rests_on_guesses,
)
from tests.chess.test_engine import FAKE, LIMIT
from tests.oracles.chess_books import book_of, uci
from tests.oracles.games import SEEDS, uniform
from tests.oracles.pgn import LINE, after, game
from tests.properties import examples


def test_moves_and_results_of_a_player(tmp_path):
    """Variations count nothing, and a player is one, however a name is spelled."""
    path = tmp_path / "games.pgn"
    games = (
        game("1. e4 e5 2. Nf3 (2. f4 exf4) {a comment} Nc6", "Müller,  Hans", "Other", Result="1-0"),
        game("1. e4 c5 2. Nf3", "Other", "müller, hans", Result="1/2-1/2"),
        game("1. d4 d5", "Other", "Third", Result="0-1"),
        game("1. c4 c5", "Other", "Third"),
    )
    path.write_bytes("".join(games).encode("latin-1"))
    start, king, two = after(""), after("e4"), after("e4 e5")
    moves = {(start, "e2e4"): 1, (two, "g1f3"): 1, (king, "c7c5"): 1}
    assert pgn_moves(path, "MÜLLER, Hans") == moves
    everyone = pgn_moves(path)
    assert everyone[start, "e2e4"] == 2 and sum(everyone.values()) == 11
    assert sum(pgn_moves(path, skip_plies=2).values()) == 3
    assert pgn_results(path, "Müller, Hans") == [([start, two], 1.0), ([king], 0.5)]
    assert pgn_results(path, "Müller, Hans", skip_plies=2) == [([two], 1.0)]
    assert [score for _, score in pgn_results(path)] == [1.0, 0.0, 0.5, 0.5, 0.0, 1.0]
    for read in (pgn_moves, pgn_results):
        with pytest.raises(
            ValueError, match=rf"{read.__name__}\(\): expected moves of 'Nobody'.*games of 'Other'"
        ):
            read(path, "Nobody")
    with pytest.raises(ValueError, match="more than 9 plies"):
        pgn_moves(path, "other", skip_plies=9)
    with pytest.raises(OSError, match="none"):
        pgn_moves(tmp_path / "none.pgn")


def test_an_engines_own_games():
    with (
        EvaluationStore(":memory:") as store,
        EnginePool(FAKE, workers=2, options={"Skill Level": 5}) as pool,
    ):
        engine = StoredEngine(store, pool)
        how = {"games": 3, "plies": 2, "samples": 5, "opening_plies": 2}
        moves = engine_moves(engine, LIMIT, **how)
        totals: collections.Counter[str] = collections.Counter()
        for (epd, move), count in moves.items():
            assert chess.Move.from_uci(move) in chess.Board(epd + " 0 1").legal_moves
            totals[epd] += count
        assert set(totals.values()) == {5} and 4 <= len(totals) <= 6
        searches = engine.searches
        assert engine_moves(engine, LIMIT, **how) == moves and engine.searches == searches  # stored
        assert engine_moves(engine, LIMIT, **how, seed=1) != moves
        one = engine_moves(engine, LIMIT, games=2, plies=1, opening_plies=0)
        assert list(one.values()) == [1]


# -- games behind replies ---------------------------------------------------------------------------------

WHITE_BOOK = book_of("| e2e4", "e2e4 c7c5 | g1f3", "e2e4 e7e5 | g1f3", "e2e4 e7e5 g1f3 b8c6 | d2d4")
BLACK_BOOK = book_of("e2e4 | c7c5", "e2e4 c7c5 g1f3 | d7d6", "d2d4 | d7d5", side=chess.BLACK)


def test_what_rests_on_guesses():
    behind = ReplyGames(1, (PlayedGame("Us", "Carol, Ann", 1999, "1-0"),))
    assert rests_on_guesses(WHITE_BOOK, {uci("e2e4 c7c5"): behind}) == [False, False, True, True]
    assert rests_on_guesses(BLACK_BOOK, {uci("e2e4"): behind}) == [False, True, True]


def random_games(rng, count):
    """Games of few lines, of one day, without a date, behind a result, from elsewhere, there twice."""
    lines = ["1. e4 c5 2. Nf3 d6", "1. e4 e5 2. Nf3 Nc6", "1. Nf3 d6 2. e4 c5 3. d4", "1. e4 c5 2. Nc3 a7"]
    lines += [LINE, "1. d4 d5 2. Nf3", "1. e4 c5 1-0 1. e4 e5 2. Nf3 0-1 3. a3"]
    text = ""
    for _ in range(count):
        white, black = rng.sample(["Ann", "Bob", "Carol"], 2)
        date = rng.choice(["????.??.??", "2001.01.01", f"{2000 + rng.randrange(20)}.05.??"])
        tags = {"Date": date, "Result": rng.choice(["1-0", "1/2-1/2"])}
        if rng.random() < 0.05:
            tags |= {"FEN": "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1", "SetUp": "1"}
        text += game(rng.choice(lines), white, black, **tags)
    return text


@examples(120)
@given(
    seed=SEEDS,
    whose=st.sampled_from([{"player": "Ann"}, {"player": "Ann; Bob"}, {"without": "Ann"}, {}]),
    before=st.sampled_from([math.inf, 2008.0]),
    plies=st.sampled_from([1, 2, 60]),
    book=st.sampled_from([WHITE_BOOK, BLACK_BOOK]),
    how=st.fixed_dictionaries({"most": st.sampled_from([1, 3]), "exits": st.booleans()}),
)
def test_games_behind_replies_are_what_a_look_through_all_games_finds(
    tmp_path_factory, seed, whose, before, plies, book, how
):
    """The first half-moves count alone; what is listed can be played through."""
    path = tmp_path_factory.getbasetemp() / "replies.pgn"
    path.write_text(random_games(random.Random(seed), 40))
    meant = GameSelection(path, before=before, max_plies=plies, **whose)
    how |= {"exits": book_exits(book, uniform) if how["exits"] else ()}
    read, report = GameReport(), GameReport()
    found, person = reply_games(book, meant, **how, report=read)
    table = meant.table(report)
    assert reply_games(book, meant, **how, report=report, table=table) == (found, person)
    assert read == report
    with mock.patch.object(move_counts, "_BATCH", 7):  # in parts
        assert reply_games(book, meant, **how) == (found, person)
    replies, years = collections.defaultdict(list), []
    for record in dataclasses.replace(meant, max_plies=60).records(GameReport()):
        if before < math.inf and (record.year is None or record.year >= before):
            continue
        year = record.year and math.floor(record.year)
        years += [year] * ((not book.side) in record.own)
        moves = [move_of(action) for action in record.actions]
        shown = record.keys[0] == position_hash(chess.Board())
        entry = PlayedGame(record.white, record.black, year, record.result, tuple(moves) if shown else ())
        pairs = enumerate(zip(record.keys[:plies], moves[:plies], strict=True))
        for pair in {pair for ply, pair in pairs if record.mover(ply) in record.own}:
            replies[pair].append((-(record.year or -math.inf), entry))
    expected = {}
    histories = [each.history for each in how["exits"] or book.positions]
    for history in {each[: ply + 1] for each in histories for ply in range(len(each))}:
        board = chess.Board()
        for move in history[:-1]:
            board.push(move)
        behind = sorted(replies[position_hash(board), history[-1]], key=lambda entry: entry[0])
        if behind and board.turn != book.side:
            expected[history] = ReplyGames(len(behind), tuple(each for _, each in behind[: how["most"]]))
    assert found == expected
    known = [year for year in years if year is not None]
    ends = min(known, default=None), max(known, default=None)
    assert person == (Person(read.names[0], len(years), *ends) if "player" in whose else None)
