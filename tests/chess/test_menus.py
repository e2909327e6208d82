"""An engine's best moves as a menu: its moves, those that are learned, and those in the files."""

import dataclasses

import chess
import pytest

from precomp_games.algorithms import best_precomputation
from precomp_games.chess import (
    PreparationSettings,
    SearchLimit,
    move_of,
    preparation_book,
    preparation_tree,
    write_pgn,
)
from precomp_games.chess.data.book import points
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.model.engine_policies import EngineMenu
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.plan.trees import certified_book
from tests.chess.test_best_first import _best_first
from tests.chess.test_preparation import HashEngine

_LIMIT = SearchLimit(nodes=5000)


class DistinctEngine(HashEngine):
    """No two moves are equally good."""

    def result(self, epd, limit, multipv):
        lines = super().result(epd, limit, 500).lines
        lines = [dataclasses.replace(line, cp=line.cp - rank) for rank, line in enumerate(lines)]
        return SearchResult(tuple(lines[:multipv]), 10, 1000)


class TyingEngine(HashEngine):
    """Its two best moves are equally good, everywhere."""

    def result(self, epd, limit, multipv):
        found = super().result(epd, limit, 500).lines
        lines = [found[0], *(dataclasses.replace(line, cp=found[0].cp) for line in found[1:2])]
        lines += [dataclasses.replace(line, cp=line.cp - 1) for line in found[2:]]
        return SearchResult(tuple(lines[:multipv]), 10, 1000)


def _moves(menu, state):
    return [move_of(action).uci() for action in menu.entries_batch([state])[0]]


def test_a_menu_is_the_best_moves_within_the_window():
    game, engine = PreparationSettings().game(), HashEngine()
    state = game.new_initial_state()
    lines = engine.result(state.epd, _LIMIT, 20).lines
    assert [line.cp for line in lines] == sorted((line.cp for line in lines), reverse=True)
    for count, window in [(1, 0.0), (3, 1000.0), (8, 20.0), (8, 0.0), (5, 7.5)]:
        menu = EngineMenu(engine, _LIMIT, 8, count, window)
        expected = [line.move for line in lines[:count] if line.cp >= lines[0].cp - window]
        assert _moves(menu, state) == expected
    assert 1 < len(_moves(EngineMenu(engine, _LIMIT, 8, 8, 7.5), state)) < 8


def test_mates_are_beyond_any_window():
    lines = (Line("e2e4", None, 3), Line("d2d4", None, 5), Line("c2c4", 900, None))

    class MatingEngine(HashEngine):
        def result(self, epd, limit, multipv):
            return SearchResult(lines, 10, 1000)

    state = PreparationSettings().game().new_initial_state()
    assert _moves(EngineMenu(MatingEngine(), _LIMIT, 3, 3, 100.0), state) == ["e2e4", "d2d4"]


def test_one_search_of_a_position_serves_its_menu_and_its_evaluation():
    settings = PreparationSettings(menu=6, max_plies=6, penalty=0.02)
    engine = HashEngine()
    _best_first(settings, engine, 0.0)
    analyst = [epd for epd, limit, _ in engine.asked if limit == str(settings.analyst_limit)]
    assert analyst and {multipv for _, limit, multipv in engine.asked if limit == str(_LIMIT)} == {6}
    kinds = preparation_policies(settings, engine)
    assert isinstance(kinds.sigma_pre[0], EngineMenu) and kinds.sigma_pre[1] is None


@pytest.mark.parametrize("player", [0, 1])
def test_of_several_best_moves_one_is_learnt(player):
    """The book of one of them is no worse, for every penalty that it pays."""
    settings = PreparationSettings(player=player, penalty=0.004, max_plies=8, opponent_temperature_cp=20.0)
    values, sizes, both = [], [], []
    for menu in (0, 1):
        tree = preparation_tree(dataclasses.replace(settings, menu=menu), TyingEngine(spread=600.0))
        best = best_precomputation(tree, player)
        values.append(best.value)
        sizes.append(best.size)
        book = preparation_book(tree, player, best.states())
        for position in book.positions:
            played = [entry for entry in position.moves if entry.probability > 0.0]
            # Of a menu, what cannot pay is left out of the tree.
            assert len(played) + len(position.others) <= 2
            assert not position.others if menu == 0 else len(played) == 1
        both.append(sum(len(position.moves) + len(position.others) == 2 for position in book.positions))
    assert values[1] >= values[0] - 1e-12
    assert sizes[1] < sizes[0]
    assert both[0] == sizes[0] and both[1] > 0


def test_where_no_moves_tie_nothing_changes():
    settings = PreparationSettings(penalty=0.004, max_plies=8, opponent_temperature_cp=20.0)
    books = []
    for menu in (0, 1):
        tree = preparation_tree(dataclasses.replace(settings, menu=menu), DistinctEngine(spread=600.0))
        best = best_precomputation(tree, 0)
        books.append((best.value, [state.actions for state in best.states()]))
        assert not tree.has_menus
    assert books[0] == books[1]


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_files_show_what_else_was_on_the_menu(order, tmp_path):
    settings = PreparationSettings(menu=3, menu_window_cp=200.0, max_plies=8, penalty=0.001)
    found = _best_first(settings, HashEngine(spread=600.0), 0.0, order=order)
    book = certified_book(found)
    assert len(book) > 1
    for position in book.positions:
        played = {entry.move for entry in position.moves}
        others = [move for move, _ in position.others]
        assert len(others) <= 2 and not played & set(others)
        if order == "certified":
            assert all(loss >= -1e-12 for _, loss in position.others)
    write_pgn(book, tmp_path / "book.pgn")
    text = (tmp_path / "book.pgn").read_text(encoding="utf-8")
    first = book.positions[0]
    board = chess.Board()
    losses = sorted(first.others, key=lambda other: other[1])
    told = ", ".join(
        f"{board.san(move)} {'+' if loss < 0.0 else '-'}{points(abs(loss))}" for move, loss in losses
    )
    assert f"instead: {told} }}" in text.replace("\n", " ")
