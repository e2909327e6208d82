"""A book that is there already, and a price per position, with an engine that is a hash function."""

import dataclasses

import chess
import numpy as np
import pytest

from precomp_games.algorithms import best_precomputation
from precomp_games.chess import (
    PreparationSettings,
    SearchLimit,
    board_key,
    move_of,
    preparation_book,
    preparation_tree,
)
from precomp_games.chess.plan.trees import kept_entries
from tests.chess.test_preparation import HashEngine

_SETTINGS = PreparationSettings(
    penalty=0.004,
    opponent_temperature_cp=60.0,
    max_plies=7,
    analyst_limit=SearchLimit(nodes=500),
    opponent_limit=SearchLimit(nodes=100),
    menu=1,
)


def _board(*moves):
    board = chess.Board()
    for move in moves:
        board.push(move)
    return board


def _keep(san, *before):
    """Return a move to keep, by its position."""
    board = _board(*before)
    return {board.epd(): board.parse_san(san)}


def _replies(settings):
    """Return the two moves that the opponent most likely begins with, in a tree without a book."""
    tree = preparation_tree(dataclasses.replace(settings, penalty=1e-4), HashEngine())
    first = int(np.flatnonzero(tree.player == 1 - settings.player)[0])
    children = sorted(tree.children(first), key=lambda h: -tree.sigma[h])[:2]
    return [move_of(int(tree.action[h])) for h in children]


@pytest.mark.parametrize("menu", [0, 1, 3])
@pytest.mark.parametrize("player", [0, 1])
def test_what_is_kept_is_played_and_costs_nothing(player, menu):
    settings = dataclasses.replace(_SETTINGS, player=player, menu=menu)
    if player == 0:  # a rare first move, and a rare reply to a likely answer
        rare = chess.Move.from_uci("a2a3")
        keep = _keep("a3") | _keep("h4", rare, next(iter(_board(rare).legal_moves)))
    else:
        first, second = _replies(settings)
        keep = _keep("h5", first) | _keep("h5", second)
    tree = preparation_tree(settings, HashEngine(), keep=keep)
    tree.check()
    known = kept_entries(tree, player)
    assert len(known)
    for entry in known.tolist():
        state = tree.state(int(tree.infoset_history[tree.entry_infoset[entry]]))
        row = tree.memorized_row(entry)
        assert {move_of(a) for a in row} == {keep[board_key(state)]}
    best = best_precomputation(tree, player, keep=known)
    book = preparation_book(tree, player, best.states())
    played = [
        (board.epd(), position.moves[0].move)
        for board, position in zip(book.boards, book.positions, strict=True)
    ]
    assert any(epd in keep for epd, _ in played)
    assert all(keep.get(epd, move) == move for epd, move in played)
    assert best.paid == sum(epd not in keep for epd, _ in played)
    assert best.value == pytest.approx(best.utility - 0.004 * best.paid, abs=1e-12)
    if menu < 3:  # the whole tree gives the same
        whole = preparation_tree(settings, HashEngine(), keep=keep, truncate="reach")
        same = best_precomputation(whole, player, keep=kept_entries(whole, player))
        assert same.value == pytest.approx(best.value, abs=1e-12)


def test_nothing_kept_is_the_preparation_as_it_was():
    plain = preparation_tree(_SETTINGS, HashEngine())
    kept = preparation_tree(_SETTINGS, HashEngine(), keep={})
    assert kept.same_as(plain)
    assert len(kept.weight) == 0
    assert len(kept_entries(kept, 0)) == 0
    nothing = best_precomputation(kept, 0, keep=kept_entries(kept, 0))
    assert nothing.value == best_precomputation(plain, 0).value


def test_positions_share_their_price():
    settings = dataclasses.replace(_SETTINGS, price="positions", penalty=0.002, opponent_temperature_cp=200.0)
    tree = preparation_tree(settings, HashEngine())
    assert tree.cut_for == "positions"
    assert not tree.has_menus
    epds = {}
    for history in range(tree.num_histories):
        epds.setdefault(int(tree.position[history]), tree.state(history).epd)
    assert len(set(epds.values())) == len(epds)
    best = best_precomputation(tree, 0, price="positions")
    assert best.gap == pytest.approx(0.0, abs=1e-12)
    by_histories = best_precomputation(tree, 0)
    assert best.value >= by_histories.utility - 0.002 * by_histories.num_positions - 1e-12
    uncut = preparation_tree(settings, HashEngine(), truncate="reach")
    assert best_precomputation(uncut, 0, price="positions").value == pytest.approx(best.value, abs=1e-12)


def test_wrong_books():
    start = chess.Board()
    wrong = [
        ({start.epd(): "e2e4"}, "a legal move"),
        (_keep("e5", chess.Move.from_uci("e2e4")), "positions of White's"),
        ({"nonsense": chess.Move.from_uci("e2e4")}, "positions of White's"),
        ({7: chess.Move.from_uci("e2e4")}, "positions of White's"),
    ]
    for keep, words in wrong:
        with pytest.raises(ValueError, match=rf"^preparation_tree\(\): expected keep to have {words}"):
            preparation_tree(_SETTINGS, HashEngine(), keep=keep)
