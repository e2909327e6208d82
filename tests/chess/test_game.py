"""Chess as an OpenSpiel game: python-chess is the judge of what is legal and what ends it."""

import itertools
import pickle
import random

import chess
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess.game import (
    NUM_DISTINCT_ACTIONS,
    ChessGame,
    ChessState,
    action_of,
    move_of,
    position_key,
)
from tests.oracles.games import SEEDS
from tests.properties import examples

# Castling, en passant, promotions and pins: the positions on which move generators are tried.
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
ROOK_ENDING = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
PROMOTIONS = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"
CASTLING = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
EN_PASSANT = "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3"
BLACK_TO_MOVE = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
CHECKS = "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1"
SHUFFLED = "7k/7p/8/8/8/8/P7/KR6 w - - 0 1"
FENS = ["", KIWIPETE, ROOK_ENDING, PROMOTIONS, CASTLING, EN_PASSANT, BLACK_TO_MOVE, CHECKS]


def play(game: ChessGame, *moves: str) -> ChessState:
    """Return the state after moves in UCI."""
    state = game.new_initial_state()
    for move in moves:
        state.apply_action(action_of(chess.Move.from_uci(move)))
    return state


def ruled(board: chess.Board, threefold: bool = False, fifty_moves: bool = False) -> float | None:
    """White's utility where the rules end a game, by python-chess."""
    outcome = board.outcome(claim_draw=False)
    if outcome is not None and outcome.winner is not None:
        return 1.0 if outcome.winner == chess.WHITE else 0.0
    drawn = board.is_stalemate() or board.is_insufficient_material()
    drawn = drawn or (threefold and board.is_repetition(3)) or (fifty_moves and board.halfmove_clock >= 100)
    return 0.5 if drawn else None


def test_what_it_says_about_itself() -> None:
    """Beside what tests of all games ask."""
    game = pyspiel.load_game("python_chess(max_plies=12)")
    assert isinstance(game, ChessGame)
    assert (game.get_type().utility, game.utility_sum()) == (pyspiel.GameType.Utility.CONSTANT_SUM, 1.0)
    assert game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION
    assert game.num_distinct_actions() == NUM_DISTINCT_ACTIONS == 24576
    assert game.get_parameters() == {"fen": "", "max_plies": 12, "threefold": False, "fifty_moves": False}
    assert (game.max_game_length(), ChessGame().max_game_length()) == (12, 100)
    game.start_board.push_san("e4")
    assert game.start_board == chess.Board()
    spaced = ChessGame({"fen": f"  {KIWIPETE.replace(' ', '   ')}\n"})  # spaces of a FEN are made single
    assert str(spaced) == str(ChessGame({"fen": KIWIPETE}))
    assert spaced.start_board == chess.Board(KIWIPETE)
    state = play(ChessGame(), "e2e4", "c7c5")
    assert state.observation_string(0) == state.board.fen()
    assert state.information_state_string(1) == "e2e4 c7c5"
    private = pyspiel.IIGObservationType(False, False, pyspiel.PrivateInfoType.SINGLE_PLAYER)
    assert game.make_py_observer(private).string_from(state, 0) == ""


# Moves and actions.


def test_every_move_has_an_action_and_no_other_number_is_one() -> None:
    promotions = (None, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN)
    ways = itertools.product(chess.SQUARES, chess.SQUARES, promotions)
    moves = [chess.Move(*way) for way in ways if way[0] != way[1]]
    actions = {action_of(move): move for move in moves}
    assert len(actions) == len(moves)
    for action in range(-1, NUM_DISTINCT_ACTIONS + 1):
        if action in actions:
            assert move_of(action) == actions[action]
        else:
            with pytest.raises(ValueError, match=r"move_of\(\): expected an action id .*, got"):
                move_of(action)
    assert action_of(chess.Move.from_uci("e2e4")) == chess.E2 + 64 * chess.E4
    assert action_of(chess.Move.from_uci("a7b8q")) == chess.A7 + 64 * chess.B8 + 4096 * 5
    for move in (chess.Move.null(), chess.Move(8, 16, chess.KING), chess.Move.from_uci("P@e4")):
        with pytest.raises(ValueError, match=r"action_of\(\): expected a move of standard chess"):
            action_of(move)


@examples(64)
@given(SEEDS, st.sampled_from(FENS))
def test_moves_are_python_chess_s(seed: int, fen: str) -> None:
    """In random games, all moves of all positions: castling, en passant and promotions among them."""
    rng, state = random.Random(seed), ChessGame({"fen": fen, "max_plies": 24}).new_initial_state()
    board = chess.Board(fen) if fen else chess.Board()
    while not state.is_terminal():
        actions = state.legal_actions()
        assert actions == sorted(action_of(move) for move in board.legal_moves)
        assert state.current_player() == (0 if board.turn == chess.WHITE else 1)
        assert state.legal_actions(1 - state.current_player()) == []
        for action in actions:
            assert state.action_to_string(action) == board.san(move_of(action))
            board.push(move_of(action))
            child = state.child(action)
            assert child.board.fen(en_passant="fen") == board.fen(en_passant="fen")
            assert child.board.move_stack == []  # an engine gets the position and nothing else
            assert child.is_terminal() == (ruled(board) is not None or child.ply == 24)
            board.pop()
        action = rng.choice(actions)
        board.push(move_of(action))
        state.apply_action(action)
        assert (str(state), state.moves()) == (board.fen(), board.move_stack)


# A rook and two kings that move back and forth repeat soon; castling rights and pawns now and then.
_SHUFFLING = ["6k1/8/8/8/8/8/8/K6R w - - 80 90", CASTLING, "4k3/4p3/8/8/8/8/4P3/R3K2R w KQ - 0 1"]


@examples(240)
@given(SEEDS, st.sampled_from(_SHUFFLING), st.booleans(), st.booleans())
def test_draws_are_python_chess_s(seed: int, fen: str, threefold: bool, fifty_moves: bool) -> None:
    rules, rng = {"threefold": threefold, "fifty_moves": fifty_moves}, random.Random(seed)
    state = ChessGame({"fen": fen, "max_plies": 100, **rules}).new_initial_state()
    board, white = chess.Board(fen), None
    while not state.is_terminal():
        actions = state.legal_actions()
        back = chess.Move.null()
        if len(board.move_stack) > 1:
            last = board.move_stack[-2]
            back = chess.Move(last.to_square, last.from_square)
        again = board.is_legal(back) and rng.random() < 0.7
        action = action_of(back) if again else rng.choice(actions)
        board.push(move_of(action))
        state = state.child(action)
        white = ruled(board, **rules)
        assert state.is_terminal() == (white is not None or state.ply == 100)
    white = 0.5 if white is None else white
    assert state.returns() == [white, 1.0 - white]


def test_an_illegal_action_is_refused_and_changes_nothing() -> None:
    for fen, move in (
        *(("", move) for move in ("e2e5", "e7e5", "e4e5", "a1a1")),
        (CASTLING, "e1h1"),  # one move, one action: not also as king takes rook
        (EN_PASSANT, "e5d6"),  # too late
        ("8/4P1k1/8/8/8/8/8/4K3 w - - 0 1", "e7e8"),  # to what?
    ):
        state = ChessGame({"fen": fen}).new_initial_state()
        action, before = chess.parse_square(move[:2]) + 64 * chess.parse_square(move[2:]), str(state)
        with pytest.raises(ValueError, match="expected a"):
            state.apply_action(action)
        assert (state.history(), str(state)) == ([], before)
        assert move != "e2e5" or state.action_to_string(0, action) == move


# The end of the game.

FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")


@pytest.mark.parametrize(
    ("params", "moves", "returns"),
    [
        ({}, FOOLS_MATE, [0.0, 1.0]),
        # Mate on the very last half-move is a mate, not a draw.
        ({"max_plies": 4}, FOOLS_MATE, [0.0, 1.0]),
        ({"max_plies": 1}, FOOLS_MATE[:1], [0.5, 0.5]),
        # Stalemate, and two bare kings.
        ({"fen": "7k/8/4K1Q1/8/8/8/8/8 w - - 0 1"}, ("e6f7",), [0.5, 0.5]),
        ({"fen": "4k3/8/8/8/8/8/3p4/4K3 w - - 0 1"}, ("e1d2",), [0.5, 0.5]),
        ({"fen": "6k1/8/8/8/8/8/8/K6R w - - 99 90", "fifty_moves": True}, ("h1h2",), [0.5, 0.5]),
        # Over before it began.
        ({"fen": "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"}, (), [1.0, 0.0]),
    ],
)
def test_how_games_end(params: dict[str, object], moves: tuple[str, ...], returns: list[float]) -> None:
    game = ChessGame(params)
    for plies in range(len(moves)):
        assert not play(game, *moves[:plies]).is_terminal()
    state = play(game, *moves)
    assert state.is_terminal() and state.legal_actions() == [] and state.returns() == returns
    with pytest.raises(ValueError, match=f"at ply {len(moves)}"):
        state.apply_action(action_of(chess.Move.from_uci("a2a3")))


def test_copies_keep_what_their_fen_does_not_show() -> None:
    for fen, moves in (
        # An en passant square whose capture is illegal, since the pawn is pinned, counts for Polyglot keys.
        ("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1", ()),
        (SHUFFLED, ("b1b2", "h8g8", "b2b1")),
    ):
        state = play(ChessGame({"fen": fen, "threefold": True}), *moves)
        again = pickle.loads(pickle.dumps(state))
        assert again.board.fen(en_passant="fen") == state.board.fen(en_passant="fen")
        assert position_key(again) == position_key(state)


# Position keys.


@pytest.mark.parametrize("threefold", [False, True])
def test_equal_keys_at_the_same_ply_are_the_same_subgame(threefold: bool) -> None:
    params = {"fen": SHUFFLED, "max_plies": 5, "threefold": threefold}
    level = [ChessGame(params).new_initial_state()]
    shared = 0
    for _ in range(3):
        level = [state.child(action) for state in level for action in state.legal_actions()]
        seen: dict[str, ChessState] = {}
        for state in level:
            other = seen.setdefault(position_key(state), state)
            if other is state:
                continue
            shared += 1
            assert (other.legal_actions(), other.returns()) == (state.legal_actions(), state.returns())
            for action in state.legal_actions():
                mine, theirs = state.child(action), other.child(action)
                assert (position_key(mine), mine.returns()) == (position_key(theirs), theirs.returns())
        level = level[:150]
    # Positions that may be repeated distinguish these short histories; without them they transpose.
    assert threefold or shared > 50


def test_keys_hold_what_repetition_depends_on() -> None:
    # The same position after the same number of half-moves, but what may come again differs.
    ways = [("b1b2", "h8g8", "b2b1", "g8h8"), ("b1c1", "h8g8", "c1b1", "g8h8")]
    for threefold in (False, True):
        game = ChessGame({"fen": SHUFFLED, "threefold": threefold})
        one, two = (play(game, *moves) for moves in ways)
        assert one.board.epd() == two.board.epd()
        assert (position_key(one) == position_key(two)) == (not threefold)
        # After a pawn move none of it can come again.
        one, two = (play(game, *moves, "a2a3") for moves in ways)
        assert position_key(one) == position_key(two)


def test_positions_that_are_none() -> None:
    for position in ("8/8/8/8/8/8/8/8 w -", "4k3/8/8/8/8/8/4R3/4K3 w -", "4k3/8/8/8/8/8/8/4K3 w KQ"):
        problem = "NO_WHITE_KING" if position.startswith("8") else ""
        expected = rf"ChessGame\(\): expected fen to be a valid position, .*{problem}"
        for make in (ChessGame, lambda params: pyspiel.load_game("python_chess", params)):
            with pytest.raises(ValueError, match=expected):
                make({"fen": f"{position} - 0 1"})
