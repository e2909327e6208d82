"""Chess as an OpenSpiel game of finite length, on python-chess.

    game = pyspiel.load_game("python_chess(max_plies=60)")
    game = pyspiel.load_game("python_chess", {"fen": "8/8/8/8/8/4k3/4p3/4K3 b - - 0 1"})

White is player 0 and Black is player 1; the side to move in the FEN moves first. Utilities are in
[0, 1] and sum to 1: 1 for a win, 1/2 for a draw, 0 for a loss. The game ends with checkmate,
stalemate, material with which nobody can mate, or after `max_plies` half-moves, which is a draw.
Mate on the last half-move wins.

There is no fifty-move rule unless `fifty_moves` asks for it, and no draw by repetition unless `threefold`
does. Every game is finite without them, the horizon calls those games a draw too, and without them the
position and the number of half-moves played are all that the rest of the game depends on: `position_key` then
lets a history tree share what it computed between histories that transpose. With both, and a horizon that is
far off, the rules are those that games are played by (`RULES_OF_CHESS`).

Each state holds one immutable position. OpenSpiel's clone deep-copies a state's Python attributes;
copies of a position are the position itself, so clones cost next to nothing and share what one of
them computed (legal actions, EPD, whether the game is over). Measured in a middle game of 37 legal
moves: a child takes 18 us with the check for the end of the game, and then, once per position,
legal_actions() 45 us and the EPD 27 us.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import chess
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games.games.openspiel_game import StringObserver, open_observer
from precomp_games.games.registered import CHESS

MAX_PLIES = 1_000_000
"""The longest game, in half-moves: OpenSpiel counts them in 32 bits."""
Plies = Annotated[int, checks.Ge(1), checks.Le(MAX_PLIES)]
"""Number of half-moves of a game."""

_SQUARES = 64
# Promotion is 0, or a python-chess piece type from KNIGHT = 2 to QUEEN = 5.
NUM_DISTINCT_ACTIONS = _SQUARES * _SQUARES * (chess.QUEEN + 1)

RULES_OF_CHESS: Mapping[str, Any] = {"max_plies": 300, "threefold": True, "fifty_moves": True}
"""Parameters of a game by the rules of chess, with draws as soon as they stand on the board. After 300
half-moves a game is a draw here."""

_FIFTY_MOVES = 100  # half-moves


@public
def action_of(move: chess.Move) -> int:
    """Return the action id of a move: from_square + 64 * to_square + 4096 * promotion.

    Squares are python-chess's (a1 = 0, h8 = 63), promotion is 0 or its piece type (KNIGHT = 2 to
    QUEEN = 5), castling is the king's own two-square move.

    Raises:
      ValueError: a null move, a drop, or a promotion to a pawn or king: no move of this game.
    """
    promotion = move.promotion or 0
    if not move or move.drop or promotion not in (0, 2, 3, 4, 5):
        raise ArgumentError(f"expected a move of standard chess, got {move!r}")
    return _number_of(move)


def _number_of(move: chess.Move) -> int:
    """Return `action_of` a legal move, which need not be checked."""
    return move.from_square + _SQUARES * move.to_square + _SQUARES * _SQUARES * (move.promotion or 0)


@public
def move_of(action: int) -> chess.Move:
    """Return the move of an action id; the inverse of `action_of`.

    Raises:
      ValueError: an id that belongs to no move on any board.
    """
    if 0 <= action < NUM_DISTINCT_ACTIONS:
        squares, from_square = divmod(action, _SQUARES)
        promotion, to_square = divmod(squares, _SQUARES)
        if promotion != chess.PAWN and from_square != to_square:
            return chess.Move(from_square, to_square, promotion or None)
    raise ArgumentError(
        "expected an action id (from_square + 64 * to_square + 4096 * promotion, "
        f"promotion 0 or 2 to 5), got {action}"
    )


def is_legal(board: chess.Board, move: chess.Move) -> bool:
    """Return whether a move is legal and written as the game writes it.

    python-chess also accepts castling written as king takes rook, which would give one move two action ids:
    nothing in this game moves to a square of its own side.
    """
    own_target = board.occupied_co[board.turn] & chess.BB_SQUARES[move.to_square]
    return not own_target and board.is_legal(move)


def board_after(board: chess.Board, move: chess.Move) -> chess.Board:
    """Return the board after a legal move, without move stack."""
    board = board.copy(stack=False)
    board.push(move)
    board.clear_stack()
    return board


class _Rules(NamedTuple):
    """Rules that end a game besides the position on the board."""

    max_plies: int
    threefold: bool
    fifty_moves: bool


@dataclasses.dataclass(eq=False)
class _Position:
    """A board at a ply, with cached results; immutable to its users.

    Attributes:
      board: without move stack, so that an engine gets this position and nothing else.
      ply: half-moves played since the game's start position.
      rules: the game's.
      earlier: under the threefold rule, EPDs of the positions since the last irreversible move,
        oldest first, without this one; otherwise empty.
    """

    board: chess.Board
    ply: int
    rules: _Rules
    earlier: tuple[str, ...] = ()

    def __deepcopy__(self, memo: object) -> _Position:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # en_passant="fen" keeps the square even where no capture is legal: Polyglot keys need it.
        fen = self.board.fen(en_passant="fen")
        return _restore_position, (fen, self.ply, tuple(self.rules), self.earlier)

    def after(self, action: int) -> _Position:
        """Return the position after a legal action.

        Raises:
          ValueError: the action is not legal here.
        """
        board = self.board
        move = move_of(action)
        if not is_legal(board, move) or self.ending is not None:
            where = f"{board.fen()!r} at ply {self.ply} of {self.rules.max_plies}"
            raise ArgumentError(f"expected a legal action in {where}, got {action} ({move.uci()})")
        earlier: tuple[str, ...] = ()
        if self.rules.threefold and not board.is_irreversible(move):
            earlier = (*self.earlier, self.epd)
        return _Position(board_after(board, move), self.ply + 1, self.rules, earlier)

    @functools.cached_property
    def epd(self) -> str:
        """Pieces, side to move, castling rights, and en passant square if a capture is legal."""
        return str(self.board.epd())

    @functools.cached_property
    def actions(self) -> list[int]:
        """Legal action ids, ascending; empty when the game is over. Callers must not change it."""
        moves = self.board.generate_legal_moves() if self.ending is None else ()
        return sorted(map(_number_of, moves))

    @functools.cached_property
    def ending(self) -> str | None:
        """Reason why the game is over, in words; None if it goes on."""
        board, rules = self.board, self.rules
        # Mate comes before the draws: a mate on the last half-move counts.
        if not any(board.generate_legal_moves()):
            return "checkmate" if board.is_check() else "stalemate"
        if board.is_insufficient_material():
            return "insufficient material"
        if self.ply >= rules.max_plies:
            return "too long"
        if rules.fifty_moves and board.halfmove_clock >= _FIFTY_MOVES:
            return "fifty moves"
        # The third occurrence needs four half-moves from each to the next.
        repeated = len(self.earlier) >= 8 and self.earlier.count(self.epd) >= 2
        return "threefold repetition" if repeated else None


def _restore_position(fen: str, ply: int, rules: tuple[Any, ...], earlier: tuple[str, ...]) -> _Position:
    return _Position(chess.Board(fen), ply, _Rules(*rules), earlier)


class ChessGame(pyspiel.Game):
    """Chess from any position, drawn after a number of half-moves; registered as `python_chess`.

    The parameters are given as a mapping; `pyspiel.load_game` also reads them from a game string.
    Returns are 0 for both players until the game is over, as OpenSpiel requires.

    Game Parameters:
      fen: start position, "" for the usual one. Standard chess only. Counters may be left out.
      max_plies: half-moves until the game is a draw, at least 1.
      threefold: whether the third occurrence of a position since the start is a draw, at once and
        without a claim. Positions are the same if pieces, side to move, castling rights and legal
        en passant captures are, which is python-chess's `is_repetition`.
      fifty_moves: whether fifty moves of both sides without a capture or a pawn's move are a draw, at once.
        The start position's halfmove clock counts.

    Raises:
      ValueError: an unknown parameter, a FEN that cannot be read or whose position is not valid,
        `max_plies` below 1.
    """

    @public
    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        values = checks.check_parameters({} if params is None else params, CHESS.defaults)
        for name, default in CHESS.defaults.items():
            if type(values[name]) is not type(default):
                kind = type(default).__name__
                raise ArgumentError(f"expected {name} of type {kind}, got {shown(values[name])}")
        values["max_plies"] = checks.check_integer(values["max_plies"], "max_plies", least=1, most=MAX_PLIES)
        # The game's string names its parameters; one space between fields makes it readable again.
        values["fen"] = " ".join(values["fen"].split())
        rules = _Rules(values["max_plies"], values["threefold"], values["fifty_moves"])
        self._root = _Position(check_fen(values["fen"]), 0, rules)
        info = pyspiel.GameInfo(
            num_distinct_actions=NUM_DISTINCT_ACTIONS,
            max_chance_outcomes=0,
            num_players=2,
            min_utility=0.0,
            max_utility=1.0,
            utility_sum=1.0,
            max_game_length=rules.max_plies,
        )
        super().__init__(CHESS.type, info, values)

    def __reduce__(self) -> tuple[Any, ...]:
        # OpenSpiel's own pickling gives a ChessGame without the attributes that __init__ sets.
        return ChessGame, (self.get_parameters(),)

    @property
    def start_board(self) -> chess.Board:
        """Copy of the start position's board."""
        return self._root.board.copy()

    def new_initial_state(self) -> ChessState:
        """Return the state at the start position."""
        return ChessState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> StringObserver:
        """Return an observer: UCI moves so far under perfect recall, otherwise the FEN."""
        return open_observer(
            self, iig_obs_type, params, lambda state: " ".join(move.uci() for move in state.moves())
        )


class ChessState(pyspiel.State):
    """A position with its history. Made by `ChessGame.new_initial_state` and `child`."""

    @public
    def __init__(self, game: ChessGame) -> None:
        super().__init__(game)
        # The only attribute: OpenSpiel copies and pickles a state's attributes one by one.
        self._position: _Position = game._root

    @property
    def board(self) -> chess.Board:
        """The board, without move stack, shared by clones of this state: read it, `copy()` to play.

        python-chess's `san` makes and unmakes a move on it, so threads must not share it either.
        """
        return self._position.board

    @property
    def epd(self) -> str:
        """The position's EPD: the FEN without clocks."""
        return self._position.epd

    @property
    def ply(self) -> int:
        """Half-moves played since the game's start position."""
        return self._position.ply

    def moves(self) -> list[chess.Move]:
        """Return the moves from the game's start position to here."""
        return [move_of(action) for action in self.history()]

    def current_player(self) -> int:
        """Return 0 for White, 1 for Black, or pyspiel's terminal player."""
        if self.is_terminal():
            return int(pyspiel.PlayerId.TERMINAL)
        return 0 if self._position.board.turn == chess.WHITE else 1

    def is_terminal(self) -> bool:
        """Return whether the game is over."""
        return self._position.ending is not None

    @public
    def repeats(self, move: chess.Move) -> bool:
        """Return whether a legal move repeats a position; never without the threefold rule."""
        earlier = self._position.earlier
        return bool(earlier) and board_after(self.board, move).epd() in earlier

    def ending(self) -> str | None:
        """Return why the game is over, in words; None if it goes on."""
        return self._position.ending

    def returns(self) -> list[float]:
        """Return utilities of White and Black, in [0, 1] with sum 1; zeros until the game is over."""
        ending = self._position.ending
        if ending is None:
            return [0.0, 0.0]
        white = 0.5 if ending != "checkmate" else 0.0 if self.board.turn == chess.WHITE else 1.0
        return [white, 1.0 - white]

    def _legal_actions(self, player: int) -> list[int]:
        del player  # pyspiel asks only for the player to move
        return self._position.actions

    def _apply_action(self, action: int) -> None:
        self._position = self._position.after(action)

    def _action_to_string(self, player: int, action: int) -> str:
        """Return SAN for a legal move; UCI for others, which have none."""
        del player
        move = move_of(action)
        board = self._position.board
        return str(board.san(move)) if board.is_legal(move) else str(move.uci())

    def __str__(self) -> str:
        return str(self._position.board.fen())


@public
def position_key(state: ChessState) -> str:
    """Return a key of the game from here on, apart from the number of half-moves left.

    History trees rely on this property: two states of one game at the same ply with equal keys are the same
    subgame: the same actions lead to equal keys again and to the same returns. Their FENs may differ in the
    halfmove clock, if no rule of the game looks at it.

    Without the threefold rule the key is the EPD. With it, the earlier positions that may still be
    repeated, i.e. those since the last irreversible move, are part of it, sorted (their order does
    not matter), and then hardly any two histories share a key. With the fifty-move rule the clock is.

    Raises:
      ValueError: a state of another game.
    """
    position = state._position
    clock = (str(position.board.halfmove_clock),) if position.rules.fifty_moves else ()
    return " | ".join((position.epd, *clock, *sorted(position.earlier)))


@public
def board_key(state: ChessState) -> str:
    """Return the EPD: the position for engines, whatever its history and the number of half-moves left.

    Engines' policies and evaluations are functions of it. The value of the game is nearly one: repetitions
    and the fifty-move rule depend on more.

    Raises:
      ValueError: a state of another game.
    """
    return state.epd


def check_fen(fen: Any) -> chess.Board:
    """Return the board of a FEN ("" for the start position).

    Raises:
      ValueError: it cannot be read, or its position is not valid; the message states the problem.
    """
    if not isinstance(fen, str):
        raise ArgumentError(f"expected fen to be text, got {shown(fen)}")
    if not fen:
        return chess.Board()
    try:
        board = chess.Board(fen)
    except ValueError as error:
        raise ArgumentError(f"expected fen to be a FEN, got {shown(fen)} ({one_line(error)})") from None
    status = board.status()
    if status != chess.STATUS_VALID:
        raise ArgumentError(f"expected fen to be a valid position, got {shown(fen)} ({status!r})")
    return board


def check_unfinished(states: Any, name: str, player_id: int | None = None) -> list[ChessState]:
    """Return states of unfinished games of chess; `player_id`, if given, is to move in all of them."""
    unfinished = checks.each_of(ChessState).function(states, name)
    for state in unfinished:
        if state.is_terminal():
            raise ArgumentError(f"expected unfinished games, got {str(state)!r} at ply {state.ply}")
        if player_id is not None:
            mover = state.current_player()
            player_id = checks.check_integer(player_id, "player_id", least=mover, most=mover)
    return list(unfinished)


UnfinishedStates = Annotated[Sequence[ChessState], checks.Check(check_unfinished)]
"""States of unfinished games of chess."""
