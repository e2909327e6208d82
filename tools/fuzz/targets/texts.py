"""Targets that take text: positions, policies and games by name, limits."""

from __future__ import annotations

import os
import pathlib
import re
import zlib

import chess
import pyspiel

from precomp_games import make_policy
from precomp_games.chess import (
    ChessGame,
    EngineError,
    EvaluationStore,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    opponent_policy,
    write_polyglot,
)
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.policies.specs import check_spec
from precomp_games.tree.base_game import loaded_game
from tools.fuzz import target
from tools.samples import sample_games, small_book

# -- positions ---------------------------------------------------------------------------------------------

_FENS = (
    chess.STARTING_FEN.encode(),
    b"r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4",
    b"rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    b"8/P7/8/8/8/k7/8/K7 w - - 99 200",
    b"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
)
_FEN_WORDS = (b" w ", b" b ", *b"KQkq HAha e3 i9 - / 9 k K ~ [Qq] +3+3".split())


@target("fen", lambda: _FENS, _FEN_WORDS, refusals=(EngineError,))
def _(data: bytes, folder: pathlib.Path) -> object:
    text = data.decode("utf-8", "surrogateescape")
    way = zlib.crc32(data) % 4
    if way == 0:
        state = ChessGame({"fen": text, "max_plies": 4}).new_initial_state()
        return state if state.is_terminal() else state.child(state.legal_actions()[0])
    if way == 1:
        return pyspiel.load_game("python_chess", {"fen": text}).new_initial_state().legal_actions()
    if way == 2:
        limit = SearchLimit(nodes=1)
        return PreparationSettings(0, 0.1, 10.0, limit, limit, fen=text)
    with EvaluationStore(folder / "store.sqlite") as store:
        store.put("Fake", "nodes=1", 1, text, SearchResult((Line("e2e4", 1, None),), 1, 1))
        return StoredEngine(store).search([text], SearchLimit(nodes=1), 1)


# -- policies ----------------------------------------------------------------------------------------------

_SPECS = (
    b"uniform",
    b"random(seed=1,concentration=0.5)",
    b"cfr(iterations=3)",
    b"best_response(to=uniform)",
    b"noisy(policy=cfr(iterations=2),epsilon=0.1)",
    b"noisy(policy=noisy(policy=uniform,epsilon=0.5),epsilon=1e-3)",
    b"mixture(a=uniform,b=random(seed=1))",
    b"alpha_beta(depth=2)",
    b"mcts(simulations=5)",
    b"softmax(policy=alpha_beta(depth=2),temperature=0.5)",
)
_CHESS_SPECS = (
    b"games(file=games.pgn,player=Karpov Anatoli,fit=rolling)",
    b"games(file=games.pgn,half_life=2.5,alpha=1,prior=uniform,speed=blitz,before=1990)",
    b"polyglot(file=book.bin,weights=score,alpha=2.0)",
    rb'games(file="my \"games\" \u00281), a=b.pgn",player="Karpov, Anatoli",prior="uniform")',
    b"uci(r=40,nodes=100,top_k=8,plays=bestmove)",
    b"mixture(a=uniform,b=polyglot(file=book.bin))",
)
_SPEC_WORDS = (
    *rb'" =" ", \ \u0028 "uniform" uniform cfr noisy ( ) () = , policy= epsilon=nan epsilon=2 file='.split(),
    *b"iterations=0 seed=-1 seed=99999999999999999999 true True 1e-3 uniform() name=x a=a,a=a ;".split(),
    *b"games(file=.) player= depth=0 ' ()()".split(),
    b" ",
)


def _slow(data: bytes) -> bool:
    """Return whether an input asks for long work that would be done, or for a program."""
    return b"engine" in data or re.search(rb"\d{4,}|\d[eE]\d|[\xd9\xc2]", data) is not None


@target("named_policy", lambda: _SPECS, _SPEC_WORDS)
def _(data: bytes, folder: pathlib.Path) -> object:
    if _slow(data) and re.search(rb"iterations|simulations", data):
        return None
    text = data.decode("utf-8", "surrogateescape")
    game = pyspiel.load_game("kuhn_poker")
    check_spec(text, "sigma")
    return make_policy(game, text).action_probabilities(game.new_initial_state().child(0).child(1))


@target("named_opponent", lambda: _CHESS_SPECS, _SPEC_WORDS, refusals=(OSError,), names_files=True)
def _(data: bytes, folder: pathlib.Path) -> object:
    if b"engine" in data:
        return None
    text = data.decode("utf-8", "surrogateescape")
    os.chdir(folder)
    (folder / "games.pgn").write_bytes(sample_games()[0])
    write_polyglot(small_book(), folder / "book.bin")
    (folder / "answers").mkdir()
    (folder / "answers" / "start.json").write_text('{"moves": [{"uci": "e2e4", "white": 3}]}')
    return opponent_policy(ChessGame({}), text, trusted=True)


# -- games -------------------------------------------------------------------------------------------------

_GAME_STRINGS = (
    b"python_chess(fen=8/P7/8/8/8/k7/8/K7 w - - 0 1,max_plies=10,threefold=True)",
    b"python_meta_precomputation(game=kuhn_poker(),sigma=uniform(),sigma_pre=random(seed=1),penalty_0=0.1)",
    b"python_meta_precomputation(game=kuhn_poker(),form=audit,check_supports=false,penalty_1=1e-2)",
    b"python_meta_precomputation(tree_file=tree.npz)",
    b"python_clock(game=tic_tac_toe(),time_0=5,time_1=3,move_time=1)",
    b"kuhn_poker(players=2)",
)
_GAME_WORDS = (*_SPEC_WORDS, *b"kuhn_poker() penalty_0= penalty_0=-1 inf tree_file= max_plies=0".split())


@target("tree_game", lambda: _GAME_STRINGS, _GAME_WORDS)
def _(data: bytes, folder: pathlib.Path) -> object:
    """A tree's game is a string in a file."""
    text = data.decode("utf-8", "surrogateescape")
    os.chdir(folder)
    return loaded_game(text).new_initial_state()
