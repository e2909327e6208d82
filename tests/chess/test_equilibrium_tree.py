"""The tree in which both sides of chess prepare: what is on its edges, and what menus make it worth."""

import dataclasses

import numpy as np
import pytest

from precomp_games.algorithms import (
    best_precomputation,
    memorized_states,
    meta_equilibrium,
)
from precomp_games.chess import PreparationSettings, move_of, preparation_book, write_pgn, write_polyglot
from precomp_games.chess.model.engine_policies import LinearUtility, softmax
from precomp_games.chess.plan.trees import equilibrium_tree
from tests.chess.test_menus import DistinctEngine, TyingEngine
from tests.chess.test_preparation import BLACK_FIRST, HashEngine
from tests.oracles.pgn import read_moves

_SETTINGS = PreparationSettings(
    menu=2, menu_window_cp=40.0, penalty=0.09, opponent_temperature_cp=40.0, max_plies=6
)


def _tree(fen="", engine=None, **changes):
    return equilibrium_tree(dataclasses.replace(_SETTINGS, fen=fen, **changes), engine or HashEngine(400.0))


def _board(tree, history):
    """Return the board after a history."""
    board = tree.game.start_board
    for action in tree.actions(history):
        board.push(move_of(action))
    return board


@pytest.mark.parametrize(("menu", "fen"), [(0, ""), (1, ""), (3, ""), (3, BLACK_FIRST)])
def test_what_is_on_the_edges(menu, fen):
    """Each side learns what its engine finds in the larger search, and plays what it finds in the smaller."""
    settings = dataclasses.replace(_SETTINGS, menu=menu, fen=fen, penalty=0.1, max_plies=4)
    engines = (TyingEngine(400.0), TyingEngine(300.0))
    tree = equilibrium_tree(settings, *engines)
    tree.check()
    window = settings.menu_window_cp if menu > 1 else 0.0
    for infoset in range(tree.num_infosets):
        history = int(tree.infoset_history[infoset])
        board = _board(tree, history)
        engine, legal = engines[tree.player[history]], {m.uci() for m in board.legal_moves}
        lines = engine.result(board.epd(), settings.analyst_limit, settings.multipv).lines
        best = {line.move for line in lines[: menu or None] if line.cp >= lines[0].cp - window}
        rows = [
            {move_of(action).uci(): p for action, p in tree.memorized_row(entry).items()}
            for entry in range(*tree.first_entry[infoset : infoset + 2])
        ]
        if menu == 0:  # both of the best moves, and both must be known
            assert rows == [pytest.approx(dict.fromkeys([line.move for line in lines[:2]], 0.5))]
        elif menu == 1:
            assert [list(row.values()) for row in rows] == [[1.0]] * len(rows)
            assert {move for row in rows for move in row} <= {line.move for line in lines[:2]}
        else:
            assert {move for row in rows for move in row} <= best <= legal
        play = engine.result(board.epd(), settings.opponent_limit, settings.top_k).lines
        odds = softmax([line.cp for line in play], settings.opponent_temperature_cp)
        children = tree.children(history)
        played = {move_of(int(tree.action[c])).uci(): tree.sigma[c] for c in children if tree.sigma[c] > 0.0}
        assert played == pytest.approx({line.move: p for line, p in zip(play, odds, strict=True)})
    for leaf in np.flatnonzero(tree.num_children == 0).tolist():
        board = _board(tree, leaf)
        if (menu > 1 or len(tree.actions(leaf)) < settings.max_plies) and not board.is_game_over():
            line = engines[0].result(board.epd(), settings.analyst_limit, settings.multipv).lines[0]
            mover = LinearUtility().mover_utility(line, board)
            assert tree.value[leaf] == pytest.approx(mover if board.turn else 1.0 - mover)


def test_a_larger_menu_of_one_side_helps_it():
    """Of the other side nothing changes: a choice cannot be worth less than what it is a choice of."""
    trees = {
        menu: _tree(menu=menu, penalty=0.05, max_plies=5, engine=DistinctEngine(400.0)) for menu in (0, 1, 2)
    }
    assert not trees[0].has_menus and not trees[1].has_menus  # the best move is one alone
    assert trees[0].num_entries == trees[1].num_entries < trees[2].num_entries
    values = [best_precomputation(trees[menu], i).value for i in (0, 1) for menu in (1, 2)]
    assert values[0] <= values[1] + 1e-12 and values[2] <= values[3] + 1e-12


def test_books_drawn_have_the_entries_moves(tmp_path):
    """Book, PGN and Polyglot file of a drawn set have its entries' moves, even second moves."""
    tree = _tree(penalty=0.01)
    found, seconds, mixed = meta_equilibrium(tree), 0, 0
    assert found.nash_conv < 1e-12
    for i, strategy in enumerate(found.strategies):
        states = memorized_states(strategy, found.strategies[1 - i])
        mixed += len(states) - len({state.infoset for state in states})
        for state in states:
            for other in state.alternatives:
                assert other.loss >= -1e-9  # nothing is better than what an equilibrium plays
        for seed in range(2):
            drawn = set(strategy.draw(np.random.default_rng(seed)).tolist())
            book = preparation_book(tree, i, [state for state in states if state.entry in drawn])
            assert len(book) == len(drawn)
            for entry, position in zip(sorted(drawn), book.positions, strict=True):
                infoset = int(tree.entry_infoset[entry])
                expected = {move_of(action): p for action, p in tree.memorized_row(entry).items()}
                assert {play.move: play.probability for play in position.moves} == expected
                assert len(position.moves) == 1
                seconds += entry > tree.first_entry[infoset]
            write_pgn(book, tmp_path / "book.pgn")
            write_polyglot(book, tmp_path / "book.bin")
            for position, board in zip(book.positions, book.boards, strict=True):
                assert position.moves[0].move in read_moves(tmp_path / "book.bin", board)
    assert seconds > 0 and mixed > 0


@pytest.mark.parametrize(("plays", "weak"), [("softmax", 0), ("bestmove", 1)])
def test_neither_side_prepares_with_a_weakened_engine(plays, weak):
    """Books are read from scores, whatever is played: the error does not name what would be refused again."""
    engines = [HashEngine(), HashEngine()]
    engines[weak].engine_id = "Stockfish 15.1 [Skill Level=5]"
    settings = dataclasses.replace(_SETTINGS, opponent_plays=plays)
    told = (
        rf"^equilibrium_tree\(\): expected options of {('analyst', 'opponent')[weak]}.*preparation_tree\(\)"
    )
    with pytest.raises(ValueError, match=told) as error:
        equilibrium_tree(settings, *engines)
    assert "'bestmove'" not in str(error.value)


def test_books_with_menus_end_before_the_game_does():
    """Beyond `max_plies` nobody memorizes, and leaves there are evaluations, not draws."""
    for max_plies in (1, 2, 3):
        tree = _tree(max_plies=max_plies, penalty=0.01)
        plies = [len(tree.actions(h)) for h in tree.infoset_history.tolist()]
        assert max(plies) == max_plies - 1
        leaves = tree.value[tree.num_children == 0]
        assert not np.isnan(leaves).any() and len(set(leaves.tolist())) > 1
