"""Trees and searches of preparations in chess, with engines that are hash functions."""

import dataclasses
import math

import chess
import numpy as np
import pytest

from precomp_games.algorithms import (
    best_precomputation,
    confirmed_precomputation,
    memorized_states,
    meta_equilibrium,
)
from precomp_games.algorithms.preparation.best_first import best_first_precomputation
from precomp_games.chess import (
    PreparationSettings,
    SearchLimit,
    action_of,
    board_key,
    book_exits,
    move_of,
    position_key,
    preparation_book,
    preparation_tree,
    write_pgn,
    write_polyglot,
)
from precomp_games.chess.data.book import points
from precomp_games.chess.engines.searches import Line
from precomp_games.chess.game import RULES_OF_CHESS
from precomp_games.chess.model.engine_policies import EngineMenu, LinearUtility, softmax
from precomp_games.chess.model.model import preparation_policies
from precomp_games.chess.plan.trees import certified_book, equilibrium_tree
from precomp_games.chess.play.match import play_match
from tests.chess.test_prepare import BLACK_FIRST
from tests.oracles.engines import DistinctEngine, HashEngine, TyingEngine
from tests.oracles.pgn import read_moves

_LIMIT = SearchLimit(nodes=5000)
_ENDGAME = "8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"  # games are short, and end in all ways


# -- best-first search against the tree of Algorithm 1 ----------------------------------------------------


def _best_first(settings, engine, **options):
    policies = preparation_policies(settings, engine)
    asked = settings.game(), policies.sigma_pre, policies.sigma, settings.penalty, settings.player
    options |= {"position_key": position_key, "min_probability": settings.min_probability, "gap": 0.0}
    return best_first_precomputation(*asked, policies.leaf_value, **options)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("temperature", [3.0, 30.0])
def test_a_search_to_the_end_has_the_book_of_algorithm_1(player, temperature):
    options = {"penalty": 0.002, "opponent_temperature_cp": temperature, "max_plies": 12}
    settings = PreparationSettings(player=player, **options)
    whole, engine = HashEngine(spread=600.0), HashEngine(spread=600.0)
    best = best_precomputation(preparation_tree(settings, whole), player)
    found = _best_first(settings, engine)
    assert found.reached and found.upper == pytest.approx(best.value, abs=1e-9)
    assert found.lower == pytest.approx(best.value, abs=1e-9) and found.size == best.size > 3
    assert len(set(engine.asked)) <= len(set(whole.asked))
    known = {state.actions: state for state in best.states()}
    assert set(found.histories) == set(known)
    for actions, reach, row in zip(found.histories, found.reach, found.rows, strict=True):
        assert reach == pytest.approx(known[actions].reach)
        assert row == pytest.approx(best.tree.memorized_row(known[actions].infoset))
    book, expected = certified_book(found), preparation_book(best.tree, player, best.states())
    worth = {tuple(map(action_of, position.history)): position.worth for position in book.positions}
    assert worth == pytest.approx({actions: state.net_gain for actions, state in known.items()}, abs=1e-9)
    assert book.first_lines(5) == expected.first_lines(5) and len(book.positions) == best.size


# -- menus -------------------------------------------------------------------------------------------------


def _moves(menu, state):
    return [move_of(action).uci() for action in menu.entries_batch([state])[0]]


def test_a_menu_is_the_best_moves_within_the_window():
    game, engine = PreparationSettings().game(), HashEngine()
    state = game.new_initial_state()
    lines = engine.result(state.epd, _LIMIT, 20).lines
    for count, window in [(1, 0.0), (3, 1000.0), (8, 20.0), (8, 0.0), (5, 7.5)]:
        menu = EngineMenu(engine, _LIMIT, 8, count, window)
        expected = [line.move for line in lines[:count] if line.cp >= lines[0].cp - window]
        assert _moves(menu, state) == expected
    assert 1 < len(expected) < 5

    class MatingEngine(HashEngine):
        def lines(self, scored):
            return (Line("e2e4", None, 3), Line("d2d4", None, 5), Line("c2c4", 900, None))

    # Mates are beyond any window.
    assert _moves(EngineMenu(MatingEngine(), _LIMIT, 3, 3, 100.0), state) == ["e2e4", "d2d4"]


def test_one_search_of_a_position_serves_its_menu_and_its_evaluation():
    settings, engine = PreparationSettings(menu=6, max_plies=4, penalty=0.02), HashEngine()
    _best_first(settings, engine)
    assert settings.analyst_limit == _LIMIT
    assert {multipv for _, limit, multipv in engine.asked if limit == str(_LIMIT)} == {6}
    kinds = preparation_policies(settings, engine)
    assert isinstance(kinds.sigma_pre[0], EngineMenu) and kinds.sigma_pre[1] is None


@pytest.mark.parametrize("player", [0, 1])
def test_of_several_best_moves_one_is_learnt(player):
    """The book of one is no worse, for every penalty that it pays; where none tie, nothing changes."""
    settings = PreparationSettings(player=player, penalty=0.004, max_plies=8, opponent_temperature_cp=20.0)
    found, both, distinct = [], [], []
    for menu in (0, 1):
        settings = dataclasses.replace(settings, menu=menu)
        tree = preparation_tree(settings, TyingEngine(spread=600.0))
        best = best_precomputation(tree, player)
        found.append(best)
        book = preparation_book(tree, player, best.states())
        for position in book.positions:
            played = [entry for entry in position.moves if entry.probability > 0.0]
            # Of a menu, what cannot pay is left out of the tree.
            assert len(played) + len(position.others) <= 2
            assert not position.others if menu == 0 else len(played) == 1
        both.append(sum(len(position.moves) + len(position.others) == 2 for position in book.positions))
        tree = preparation_tree(settings, DistinctEngine(spread=600.0))
        best = best_precomputation(tree, player)
        distinct.append((best.value, [state.actions for state in best.states()], tree.has_menus))
    assert found[1].value >= found[0].value - 1e-12 and found[1].size < found[0].size
    assert both[0] == found[0].size and both[1] > 0
    assert distinct[0] == distinct[1] and not distinct[0][-1]


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_files_show_what_else_was_on_the_menu(order, tmp_path):
    settings = PreparationSettings(menu=3, menu_window_cp=200.0, max_plies=8, penalty=0.001)
    book = certified_book(_best_first(settings, HashEngine(spread=600.0), order=order))
    assert len(book) > 1
    for position in book.positions:
        others = {move for move, _ in position.others}
        assert len(others) <= 2 and others.isdisjoint(entry.move for entry in position.moves)
        if order == "certified":
            assert all(loss >= -1e-12 for _, loss in position.others)
    write_pgn(book, tmp_path / "book.pgn")
    text, board = (tmp_path / "book.pgn").read_text(encoding="utf-8"), chess.Board()
    losses = sorted(book.positions[0].others, key=lambda other: other[1])
    words = [f"{board.san(m)} {'+' if loss < 0.0 else '-'}{points(abs(loss))}" for m, loss in losses]
    assert f"instead: {', '.join(words)} }}" in text.replace("\n", " ")


# -- preparation with games --------------------------------------------------------------------------------


def _prepared(player, **options):
    settings = PreparationSettings(
        player=player, penalty=0.001, fen=_ENDGAME, menu=4, max_plies=20, opponent_temperature_cp=30.0
    )
    policies = preparation_policies(settings, HashEngine())
    options = {"games": 20, "promise_games": 60, "precision": 0.0, "max_evaluations": 60} | options
    asked = settings.played_game(), policies.sigma_pre, policies.sigma, settings.penalty, player
    options |= {"position_key": board_key, "min_probability": settings.min_probability}
    return settings, policies, confirmed_precomputation(*asked, policies.leaf_value, **options)


@pytest.mark.parametrize("player", [0, 1])
def test_a_match_keeps_the_promise(player):
    _, policies, found = _prepared(player)
    book = certified_book(found.preparation)
    assert book.positions and book.side == (chess.WHITE if player == 0 else chess.BLACK)
    result = play_match(book, policies.sigma[1 - player], policies.sigma[player], 60, seed=9)
    error = math.hypot(found.standard_error, result.standard_error)
    assert abs(found.promise - result.score) < 4.0 * error
    # Lines leave the set where a match's games leave the book, and as often.
    exits = book_exits(book, policies.sigma[1 - player])
    left = {each.history: each.reach for each in exits if not each.over}
    for stop in found.stops:
        assert left.pop(tuple(map(move_of, stop.history))) == pytest.approx(stop.reach)
    assert not left


def test_a_book_looks_only_so_far_and_games_go_on_by_the_rules_of_chess():
    settings, _, found = _prepared(0, games=0, promise_games=2)
    assert found.preparation.size and max(map(len, found.preparation.histories)) < settings.max_plies
    menu, game = EngineMenu(HashEngine(), _LIMIT, 4, 4, 100.0, max_plies=2), settings.played_game()
    states = [game.new_initial_state()]
    for _ in range(2):
        states.append(states[-1].child(states[-1].legal_actions()[0]))
    here, there, beyond = menu.entries_batch(states)
    assert here and there and beyond == []
    assert game.get_parameters().items() >= dict(RULES_OF_CHESS).items() and game.max_game_length() == 300


# -- both sides prepare ------------------------------------------------------------------------------------

_BOTH = PreparationSettings(
    menu=2, menu_window_cp=40.0, penalty=0.09, opponent_temperature_cp=40.0, max_plies=6
)


def _tree(engine=None, **changes):
    return equilibrium_tree(dataclasses.replace(_BOTH, **changes), engine or HashEngine(400.0))


def _board(tree, history):
    """Return the board after a history."""
    board = tree.game.start_board
    for action in tree.actions(history):
        board.push(move_of(action))
    return board


@pytest.mark.parametrize(("menu", "fen"), [(0, ""), (1, ""), (3, BLACK_FIRST)])
def test_what_is_on_the_edges(menu, fen):
    """Each side learns what its engine finds in the larger search, and plays what it finds in the smaller."""
    settings = dataclasses.replace(_BOTH, menu=menu, fen=fen, penalty=0.1, max_plies=4)
    engines = (TyingEngine(400.0), TyingEngine(300.0))
    tree = equilibrium_tree(settings, *engines)
    tree.check()
    window = settings.menu_window_cp if menu > 1 else 0.0
    for infoset in range(tree.num_infosets):
        history = int(tree.infoset_history[infoset])
        board, engine = _board(tree, history), engines[tree.player[history]]
        lines = engine.result(board.epd(), settings.analyst_limit, settings.multipv).lines
        best = {line.move for line in lines[: menu or None] if line.cp >= lines[0].cp - window}
        rows = [
            {move_of(action).uci(): p for action, p in tree.memorized_row(entry).items()}
            for entry in range(*tree.first_entry[infoset : infoset + 2])
        ]
        if menu == 0:  # both of the best moves, and both must be known
            assert rows == [pytest.approx(dict.fromkeys([line.move for line in lines[:2]], 0.5))]
        else:
            assert [list(row.values()) for row in rows] == [[1.0]] * len(rows)
            best |= {line.move for line in lines[:2]} if menu == 1 else set()
            assert {move for row in rows for move in row} <= best
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
    trees = [_tree(DistinctEngine(400.0), menu=menu, penalty=0.05, max_plies=5) for menu in (0, 1, 2)]
    assert not trees[0].has_menus and not trees[1].has_menus  # the best move is one alone
    assert trees[0].num_entries == trees[1].num_entries < trees[2].num_entries
    for player in (0, 1):
        one, more = (best_precomputation(tree, player).value for tree in trees[1:])
        assert one <= more + 1e-12


def test_books_drawn_have_the_entries_moves(tmp_path):
    """Book and Polyglot file of a drawn set have its entries' moves, even second moves."""
    tree = _tree(penalty=0.01)
    found, seconds, mixed = meta_equilibrium(tree), 0, 0
    assert found.nash_conv < 1e-12
    for i, strategy in enumerate(found.strategies):
        states = memorized_states(strategy, found.strategies[1 - i])
        mixed += len(states) - len({state.infoset for state in states})
        # Nothing is better than what an equilibrium plays.
        assert all(other.loss >= -1e-9 for state in states for other in state.alternatives)
        for seed in range(2):
            drawn = set(strategy.draw(np.random.default_rng(seed)).tolist())
            book = preparation_book(tree, i, [state for state in states if state.entry in drawn])
            write_polyglot(book, tmp_path / "book.bin")
            entries = sorted(drawn)
            for entry, position, board in zip(entries, book.positions, book.boards, strict=True):
                expected = {move_of(action): p for action, p in tree.memorized_row(entry).items()}
                assert {play.move: play.probability for play in position.moves} == expected
                assert len(expected) == 1 and set(expected) <= set(read_moves(tmp_path / "book.bin", board))
                seconds += entry > tree.first_entry[int(tree.entry_infoset[entry])]
    assert seconds > 0 and mixed > 0


@pytest.mark.parametrize(("plays", "weak"), [("softmax", "analyst"), ("bestmove", "opponent")])
def test_neither_side_prepares_with_a_weakened_engine(plays, weak):
    """Books are read from scores, whatever is played: the error does not name what would be refused again."""
    engines = {"analyst": HashEngine(), "opponent": HashEngine()}
    engines[weak].engine_id = "Stockfish 15.1 [Skill Level=5]"
    message = rf"^equilibrium_tree\(\): expected options of {weak}.*preparation_tree\(\)"
    with pytest.raises(ValueError, match=message) as error:
        equilibrium_tree(dataclasses.replace(_BOTH, opponent_plays=plays), *engines.values())
    assert "'bestmove'" not in str(error.value)


@pytest.mark.parametrize("max_plies", [1, 2, 3])
def test_books_with_menus_end_before_the_game_does(max_plies):
    """Beyond `max_plies` nobody memorizes, and leaves there are evaluations, not draws."""
    tree = _tree(max_plies=max_plies, penalty=0.01)
    assert max(len(tree.actions(h)) for h in tree.infoset_history.tolist()) == max_plies - 1
    leaves = tree.value[tree.num_children == 0]
    assert not np.isnan(leaves).any() and len(set(leaves.tolist())) > 1
