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
from tests.oracles.engines import HashEngine

SETTINGS = PreparationSettings(
    penalty=0.004,
    opponent_temperature_cp=60.0,
    max_plies=7,
    analyst_limit=SearchLimit(nodes=500),
    opponent_limit=SearchLimit(nodes=100),
    menu=1,
)


def keep_of(san, *before):
    """Return a move to keep, by its position."""
    board = chess.Board()
    for move in before:
        board.push(move)
    return {board.epd(): board.parse_san(san)}


def replies(settings):
    """Return the two moves that the opponent most likely begins with, in a tree without a book."""
    tree = preparation_tree(dataclasses.replace(settings, penalty=1e-4), HashEngine())
    first = int(np.flatnonzero(tree.player == 1 - settings.player)[0])
    children = sorted(tree.children(first), key=lambda h: -tree.sigma[h])[:2]
    return [move_of(int(tree.action[h])) for h in children]


@pytest.mark.parametrize("menu", [0, 1, 3])
@pytest.mark.parametrize("player", [0, 1])
def test_what_is_kept_is_played_and_costs_nothing(player, menu):
    settings = dataclasses.replace(SETTINGS, player=player, menu=menu)
    if player == 0:  # a rare first move, and a rare reply to a likely answer
        keep = keep_of("a3") | keep_of("h4", chess.Move.from_uci("a2a3"), chess.Move.from_uci("g8h6"))
    else:
        first, second = replies(settings)
        keep = keep_of("h5", first) | keep_of("h5", second)
    tree = preparation_tree(settings, HashEngine(), keep=keep)
    tree.check()
    known = kept_entries(tree, player)
    assert len(known)
    for entry in known.tolist():
        state = tree.state(int(tree.infoset_history[tree.entry_infoset[entry]]))
        assert {move_of(a) for a in tree.memorized_row(entry)} == {keep[board_key(state)]}
    best = best_precomputation(tree, player, keep=known)
    book = preparation_book(tree, player, best.states())
    played = [(b.epd(), p.moves[0].move) for b, p in zip(book.boards, book.positions, strict=True)]
    assert any(epd in keep for epd, _ in played)
    assert all(keep.get(epd, move) == move for epd, move in played)
    assert best.paid == sum(epd not in keep for epd, _ in played)
    assert best.value == pytest.approx(best.utility - 0.004 * best.paid, abs=1e-12)
    if menu < 3:  # the whole tree gives the same
        whole = preparation_tree(settings, HashEngine(), keep=keep, truncate="reach")
        same = best_precomputation(whole, player, keep=kept_entries(whole, player))
        assert same.value == pytest.approx(best.value, abs=1e-12)


def test_nothing_kept_is_the_preparation_as_it_was():
    plain = preparation_tree(SETTINGS, HashEngine())
    kept = preparation_tree(SETTINGS, HashEngine(), keep={})
    assert kept.same_as(plain)
    assert len(kept.weight) == len(kept_entries(kept, 0)) == 0


def test_positions_share_their_price():
    settings = dataclasses.replace(SETTINGS, price="positions", penalty=0.002, opponent_temperature_cp=200.0)
    tree = preparation_tree(settings, HashEngine())
    assert tree.cut_for == "positions" and not tree.has_menus
    epds = {int(tree.position[h]): tree.state(h).epd for h in range(tree.num_histories)}
    assert len(set(epds.values())) == len(epds)
    best = best_precomputation(tree, 0, price="positions")
    uncut = preparation_tree(settings, HashEngine(), truncate="reach")
    assert best_precomputation(uncut, 0, price="positions").value == pytest.approx(best.value, abs=1e-12)


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ({chess.Board().epd(): "e2e4"}, "a legal move"),
        (keep_of("e5", chess.Move.from_uci("e2e4")), "positions of White's"),
        ({"nonsense": chess.Move.from_uci("e2e4")}, "positions of White's"),
        ({7: chess.Move.from_uci("e2e4")}, "positions of White's"),
    ],
)
def test_books_that_cannot_be_kept_are_refused(keep, words):
    with pytest.raises(ValueError, match=rf"^preparation_tree\(\): expected keep to have {words}"):
        preparation_tree(SETTINGS, HashEngine(), keep=keep)
