"""A book of one's own on a tree: against a walk through the game, and the best book there is."""

import dataclasses
import random

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import chess as prep
from precomp_games.algorithms import best_precomputation, judge_book
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.plan.judging import _written, known_entries, line_of, repertoire_policies
from tests.oracles.engines import HashEngine
from tests.oracles.games import SEEDS
from tests.properties import examples

_ENGINE = HashEngine(spread=400.0)
_SETTINGS = prep.PreparationSettings(
    penalty=1e-7, menu=2, max_plies=6, opponent_temperature_cp=40.0, top_k=3, menu_window_cp=500.0
)


def _book(settings):
    """All lines of four half-moves with the opponent's replies, and two moves of one's own at each turn."""
    policies, player = preparation_policies(settings, _ENGINE), settings.player
    lines = []

    def walk(state, words):
        if state.is_terminal() or len(words) == 4:
            lines.append(" ".join(words) + " *\n")
            return
        actions = list(policies.sigma[1 - player].action_probabilities(state))
        if state.current_player() == player:
            actions = sorted(state.legal_actions())[len(words) :: 7][:2]
        for action in actions:
            walk(state.child(action), [*words, state.action_to_string(action)])

    walk(settings.game().new_initial_state(), [])
    return "\n".join(lines)


def _walk(settings, book, by_position):
    """Return the value of playing the book's first moves as far as it goes, and then stopping."""
    policies, player = preparation_policies(settings, _ENGINE), book.player

    def value(state, line):
        if state.is_terminal():
            return float(state.returns()[player])
        if state.current_player() == player:
            known = book.actions_at(state.epd) if by_position or line in book.lines else ()
            if not known:
                white = float(policies.leaf_value.evaluate_batch([state])[0])
                return white if player == 0 else 1.0 - white
            return value(state.child(known[0]), (*line, known[0]))
        row = policies.sigma[1 - player].action_probabilities(state)
        return sum(p * value(state.child(a), (*line, a)) for a, p in row.items())

    return value(settings.game().new_initial_state(), ())


@pytest.mark.parametrize("known", ["positions", "lines"])
@pytest.mark.parametrize("player", [0, 1])
def test_the_books_value_is_a_walks(tmp_path, player, known):
    settings = dataclasses.replace(_SETTINGS, player=player)
    (tmp_path / "mine.pgn").write_text(_book(settings))
    book = prep.read_repertoire(tmp_path / "mine.pgn", chess.WHITE if player == 0 else chess.BLACK)
    policies = repertoire_policies(preparation_policies(settings, _ENGINE), book, 3, count=2)
    tree = prep.preparation_tree(settings, _ENGINE, policies=policies, truncate="reach")
    found = known_entries(tree, book, known)
    judged = judge_book(tree, player, found.memorization_set, own_entries=found.own_entries)
    assert judged.utility == pytest.approx(_walk(settings, book, known == "positions"), abs=1e-9)
    assert judged.size >= 3 and found.met <= book.playable | set(book.positions)
    assert judged.own_regret >= -1e-12 and judged.regret >= judged.own_regret - 1e-12
    assert set(found.memorization_set.tolist()) <= set(found.own_entries.tolist())


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    "fen",
    [
        "rnbqkbnr/ppp1p2p/3p2p1/5p1Q/P3P3/8/1PPP1PPP/RNB1KBNR w KQkq - 0 4",
        "rnbqk1nr/pp1pbppp/2p1p3/8/3P2P1/N7/PPP1PP1P/R1BQKBNR w KQkq - 1 4",
    ],
)
def test_a_book_of_the_preparation_has_no_regret(tmp_path, fen, player):
    settings = dataclasses.replace(_SETTINGS, player=player, penalty=0.005, menu=1, fen=fen)
    tree = prep.preparation_tree(settings, _ENGINE)
    best = best_precomputation(tree, player)
    written = prep.preparation_book(tree, player, best.states())
    assert best.size >= 4
    prep.write_pgn(written, tmp_path / "book.pgn")
    book = prep.read_repertoire(tmp_path / "book.pgn", written.side, fen=fen)
    policies = repertoire_policies(preparation_policies(settings, _ENGINE), book, settings.max_plies)
    whole = prep.preparation_tree(settings, _ENGINE, policies=policies, truncate="reach")
    found = known_entries(whole, book, "lines")
    judged = judge_book(whole, player, found.memorization_set)
    assert judged.size == best.size and judged.utility == pytest.approx(best.utility, abs=1e-12)
    assert judged.regret == pytest.approx(0.0, abs=1e-9)
    prep.write_polyglot(written, tmp_path / "book.bin")
    by_key = prep.read_repertoire(tmp_path / "book.bin", written.side, fen=fen).positions
    assert {e: p.moves for e, p in by_key.items()} == {e: p.moves for e, p in book.positions.items()}


@examples(40)
@given(SEEDS, st.integers(0, 2))
def test_lines_are_written_as_python_chess_writes_them(seed, plies):
    rng, start, lines = random.Random(seed), chess.Board(), []
    for _ in range(plies):
        start.push(rng.choice(list(start.legal_moves)))
    for _ in range(8):
        shared = rng.choice([(), *lines])
        line = list(shared[: rng.randrange(1 + len(shared))])
        board = start.copy(stack=False)
        for move in line:
            board.push(move)
        for _ in range(rng.randrange(6)):
            line.append(rng.choice(list(board.legal_moves)))
            board.push(line[-1])
        lines.append(tuple(line))
    shown = [moves for moves in lines if moves]
    for (*before, last), (text, san) in zip(shown, _written(start, shown), strict=True):
        assert (text or "(start)") == line_of(start, before)
        assert start.variation_san([*before, last]).endswith(san)
