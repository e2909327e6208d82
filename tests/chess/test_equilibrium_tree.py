"""The tree in which both sides of chess prepare: what is on its edges, and what menus make it worth."""

import dataclasses
import itertools
import math

import chess
import numpy as np
import pytest

from precomp_games.algorithms import (
    best_precomputation,
    memorized_states,
    meta_equilibrium,
)
from precomp_games.chess import (
    LinearUtility,
    PreparationSettings,
    equilibrium_tree,
    move_of,
    preparation_book,
    write_pgn,
    write_polyglot,
)
from precomp_games.chess.policies import softmax
from tests.chess.test_menus import DistinctEngine, TyingEngine
from tests.chess.test_preparation import BLACK_FIRST, HashEngine
from tests.menus import matrix_value

_SETTINGS = PreparationSettings(
    menu=2, menu_window_cp=40.0, penalty=0.09, opponent_temperature_cp=40.0, max_plies=6
)


def _tree(fen="", engine=None, **changes):
    return equilibrium_tree(dataclasses.replace(_SETTINGS, fen=fen, **changes), engine or HashEngine(400.0))


def _sets(tree, player):
    """Every memorization set of a player with its choices, as {information state: entry}."""

    def after(entry):
        own = np.flatnonzero((tree.infoset_player == player) & (tree.previous == entry)).tolist()
        options = [
            [{}] + [{i: e} | below for e in range(*tree.first_entry[i : i + 2]) for below in after(e)]
            for i in own
        ]
        return [{i: e for part in mix for i, e in part.items()} for mix in itertools.product(*options)]

    return after(-1)


def _payoffs(tree, sets):
    """float64[|sets_0|, |sets_1|]: White's meta-game utility, by a walk over the tree for all at once."""
    matrix = np.zeros(tuple(map(len, sets)))

    def walk(history, weights):
        children = tree.children(history)
        if not len(children):
            matrix[...] += tree.value[history] * np.outer(*weights)
        i, infoset = int(tree.player[history]), int(tree.infoset[history])
        for child in children:
            action = int(tree.action[child])
            odds = [
                tree.memorized_row(chosen[infoset]).get(action, 0.0)
                if infoset in chosen
                else tree.sigma[child]
                for chosen in sets[i]
            ]
            part = list(weights)
            part[i] = part[i] * odds
            if part[i].any():
                walk(child, part)

    walk(0, [np.ones(len(each)) for each in sets])
    white, black = (np.array([len(chosen) for chosen in each]) for each in sets)
    return matrix - tree.penalties[0] * white[:, None] + tree.penalties[1] * black


@pytest.mark.parametrize("fen", ["", BLACK_FIRST])
def test_menus_of_both_sides_against_all_pairs_of_sets(fen):
    """Among them sets of the unprepared and of those who choose the second move."""
    engine, seconds = HashEngine(400.0), 0
    for max_plies, penalty in ((2, 0.01), (3, 0.02)):
        tree = _tree(fen, engine, penalty=penalty, max_plies=max_plies)
        tree.check()
        sets = [_sets(tree, i) for i in (0, 1)]
        assert 4 <= math.prod(map(len, sets)) <= 40_000 and tree.has_menus
        matrix = _payoffs(tree, sets)
        found = meta_equilibrium(tree)
        assert found.value == pytest.approx(matrix_value(matrix), abs=1e-9)
        assert found.solver == "double_oracle" and found.nash_conv < 1e-12
        first = [best_precomputation(tree, i) for i in (0, 1)]
        unprepared = [each.index({}) for each in sets]
        assert first[0].value == pytest.approx(matrix[:, unprepared[1]].max(), abs=1e-12)
        assert 1.0 - first[1].value == pytest.approx(matrix[unprepared[0]].min(), abs=1e-12)
        for strategy in found.strategies:
            entries = np.flatnonzero(strategy.plan())
            seconds += int((entries != tree.first_entry[tree.entry_infoset[entries]]).sum())
    assert seconds > 0 or fen


@pytest.mark.parametrize("menu", [0, 1, 3])
def test_what_is_on_the_edges(menu):
    """Each side learns what its engine finds in the larger search, and plays what it finds in the smaller."""
    settings = dataclasses.replace(_SETTINGS, menu=menu, penalty=0.1, max_plies=4)
    engines = (TyingEngine(400.0), TyingEngine(300.0))
    tree = equilibrium_tree(settings, *engines)
    window = settings.menu_window_cp if menu > 1 else 0.0
    for infoset in range(tree.num_infosets):
        history = int(tree.infoset_history[infoset])
        board = chess.Board()
        for action in tree.actions(history):
            board.push(move_of(action))
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
        board = chess.Board()
        for action in tree.actions(leaf):
            board.push(move_of(action))
        if (menu > 1 or len(board.move_stack) < settings.max_plies) and not board.is_game_over():
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
    """Book, PGN and Polyglot file of a drawn set say what its entries play, be that a second move."""
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
            with chess.polyglot.open_reader(tmp_path / "book.bin") as reader:
                for position in book.positions:
                    board = chess.Board()
                    for move in position.history:
                        board.push(move)
                    assert position.moves[0].move in {entry.move for entry in reader.find_all(board)}
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


def test_a_tree_that_grows_too_large_is_given_up():
    with pytest.raises(ValueError, match=r"at most max_histories=50 histories.*raise the penalties"):
        equilibrium_tree(dataclasses.replace(_SETTINGS, penalty=0.001), HashEngine(), max_histories=50)
