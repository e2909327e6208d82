"""Trees of preparations, of one side (Algorithm 1) and of both (the meta-game), and their books."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import chess
import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.deadlines import as_far_as_time_goes
from precomp_games.algorithms.preparation.partial_tree import CertifiedPrecomputation
from precomp_games.chess.data.book import Book, BookMove, BookPosition
from precomp_games.chess.engines.stored_engine import EngineLike, ScoringEngine, check_scores
from precomp_games.chess.game import (
    ChessGame,
    ChessState,
    action_of,
    board_key,
    is_legal,
    move_of,
    position_key,
)
from precomp_games.chess.model import model
from precomp_games.chess.model.engine_policies import EngineMenu, EnginePolicy
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.tree.expansion.options import Truncation
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import Alternative, MemorizedState

_LOOKS = (256, 64, 16, 8, 4, 2, 1)  # multiples of the penalty
Found = TypeVar("Found")


@public
def preparation_tree(
    settings: PreparationSettings,
    analyst: ScoringEngine,
    opponent: EngineLike | None = None,
    *,
    policies: model.PreparationPolicies | None = None,
    truncate: Truncation = "values",
    keep: Mapping[str, chess.Move] | None = None,
) -> HistoryTree:
    """Expand the tree of Algorithm 1 for one side.

    With a price per position, histories share everything by `board_key`.

    Args:
      settings: of the preparation.
      analyst: see `preparation_policies`.
      opponent: see `preparation_policies`.
      policies: of `preparation_policies`, if they have been made already.
      truncate: see `HistoryTree.from_game`.
      keep: an existing book: the move by the EPD of the position (`board_key`). There it is the only
        candidate move, and it costs nothing: the tree has weight 0 there. For solvers, pass
        `keep=kept_entries(tree, player)`.

    Raises:
      ValueError, EngineError: as `preparation_policies` and `HistoryTree.from_game`.
    """
    if policies is None:
        policies = model.preparation_policies(settings, analyst, opponent)
    else:
        model.check_opponent(settings, opponent)
    how: dict[str, Any] = {"price": settings.price}
    if keep is not None:
        book = policies.sigma_pre[settings.player]
        known = _KeptMoves(book, _checked_moves(keep, settings.player))
        policies = dataclasses.replace(policies, sigma_pre=model.by_player(settings.player, known, None))
        how["weight"] = known.weight
    if settings.price == "positions":
        how["position_key"] = board_key
    penalties = model.by_player(settings.player, settings.penalty, math.inf)
    return _tree(settings, policies, penalties, truncate=truncate, stop_value="evaluate", **how)


@public
def kept_entries(tree: HistoryTree, player: checks.Player) -> npt.NDArray[np.int64]:
    """Return int64[k]: the known entries of a tree, of `preparation_tree` with a book to keep."""
    own = tree.entry_player == player
    return np.flatnonzero(own & (tree.infoset_weight[tree.entry_infoset] == 0.0))


@public
def equilibrium_tree(
    settings: PreparationSettings,
    analyst: EngineLike,
    opponent: EngineLike | None = None,
    *,
    max_histories: checks.PositiveInt = 50_000_000,
) -> HistoryTree:
    """Expand the tree of the meta-game in which both sides prepare.

    Both play as the opponent does, at its limit and temperature, and may memorize the moves of a search at
    the analyst's limit: `settings.menu` and `own_temperature_cp` are both sides'. White has the engine
    `analyst`, Black `opponent`, and neither may be a weakened one, since books are read from scores.
    `settings.player` is ignored, and `settings.penalty` is both sides'. The value of a player who stops is
    that of sigma's play; evaluations, White's engine's, are the leaf values, and prune lines where stopping
    alone is better (`truncate="values"`).

    With `settings.menu` of 2 or more, no penalty ends a line on which both sides memorize: neither one's
    choices make it less likely, so there are as many lines as menus have entries, to the power of plies.
    Books then end after `settings.max_plies`, a few, and beyond that the game goes on by the rules of chess:
    leaves are evaluated, and not drawn.

    Args:
      settings: of the preparation.
      analyst: White's engine.
      opponent: Black's; by default the analyst's.
      max_histories: see `HistoryTree.from_game`.

    Raises:
      ValueError, EngineError: as `preparation_tree`; more histories than `max_histories`.
    """
    white, black = engines = (analyst, analyst if opponent is None else opponent)
    for engine, name in zip(engines, ("analyst", "opponent"), strict=True):
        check_scores(engine, name, "preparation_tree() prepares against what one answers")
    if settings.opponent:
        raise ArgumentError(
            "expected settings without an opponent of its own, since both sides prepare and play "
            f"as the engine does, got {settings.opponent!r}"
        )
    several = settings.menu > 1
    game = settings.played_game() if several else settings.game()
    both = model.PreparationPolicies(
        (model.book_choice(settings, white), model.book_choice(settings, black)),
        (model.opponents_play(settings, game, white), model.opponents_play(settings, game, black)),
        model.leaf_value(settings, analyst),
    )
    return _tree(
        settings,
        both,
        (settings.penalty,) * 2,
        truncate="values",
        max_histories=max_histories,
        **({"game": game, "position_key": board_key} if several else {}),
    )


def looked_far(
    settings: PreparationSettings, look: Callable[[PreparationSettings], Found], *, by_steps: bool = True
) -> Found:
    """Return `look`'s result; with limited time, that of the last penalty for which there is time.

    Args:
      settings: of the preparation.
      look: finds a result by settings with a penalty.
      by_steps: whether penalties fall to that of the settings; otherwise only that one is used.
    """
    steps = [
        dataclasses.replace(settings, penalty=times * settings.penalty)
        for times in (_LOOKS if by_steps else (1,))
    ]
    return as_far_as_time_goes(steps, steps[-1], look)[1]


def _tree(
    settings: PreparationSettings,
    policies: model.PreparationPolicies,
    penalties: tuple[float, float],
    **how: Any,
) -> HistoryTree:
    """Expand the tree of these policies; `how` are further arguments of `HistoryTree.from_game`."""
    options = {"game": settings.game(), "position_key": position_key} | how
    return HistoryTree.from_game(
        sigma_pre=policies.sigma_pre,
        sigma=policies.sigma,
        penalties=penalties,
        leaf_value=policies.leaf_value,
        min_probability=settings.min_probability,
        **options,
    )


# -- a book to keep ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _KeptMoves:
    """A menu of candidate moves in which the moves at some positions are known already.

    Attributes:
      others: Candidate moves elsewhere.
      moves: The move to play by the EPD of the position (`board_key`).
    """

    others: EngineMenu | EnginePolicy
    moves: Mapping[str, chess.Move]

    def entries_batch(self, states: Sequence[ChessState]) -> list[Sequence[Any]]:
        """Return the menu at each state; at a known position it is the known move alone."""
        unknown = [state for state in states if state.epd not in self.moves]
        if isinstance(self.others, EngineMenu):
            answers: list[Sequence[Any]] = list(self.others.entries_batch(unknown))
        else:
            answers = [[row] for row in self.others.action_probabilities_batch(unknown)]
        rest = iter(answers)
        return [
            [action_of(self.moves[state.epd])] if state.epd in self.moves else next(rest) for state in states
        ]

    def weight(self, state: ChessState) -> float:
        """Return a position's cost in penalties: 0 if its move is known."""
        return 0.0 if state.epd in self.moves else 1.0


def _checked_moves(value: Mapping[str, chess.Move], player: int) -> dict[str, chess.Move]:
    """Check moves by the EPDs of positions at which a player is to move.

    Raises:
      ValueError: a position cannot be read or is the other side's, or a move is not legal.
    """
    for epd, move in value.items():
        try:
            board = chess.Board(f"{epd} 0 1")
        except (TypeError, ValueError):
            board = None
        if board is None or board.turn != (player == 0):
            raise ArgumentError(
                f"expected keep to have positions of {('White', 'Black')[player]}'s as EPDs, got {shown(epd)}"
            )
        if not isinstance(move, chess.Move) or not is_legal(board, move):
            raise ArgumentError(f"expected keep to have a legal move at {epd!r}, got {shown(move)}")
    return dict(value)


# -- books -------------------------------------------------------------------------------------------------


@public
def preparation_book(
    tree: HistoryTree,
    player: checks.Player,
    states: Annotated[Iterable[MemorizedState], checks.each_of(MemorizedState)],
) -> Book:
    """Return the book of memorized states, e.g. `best.states()`, of a tree over `ChessGame`.

    A position's worth is its net gain: the loss from forgetting it and all that follows it.

    Raises:
      ValueError: another tree or player than that of the states, or no states at all.
    """
    checks.check_instance(tree.game, ChessGame, "tree.game")
    for state in states:
        if not (
            0 <= state.entry < tree.num_entries
            and tree.entry_player[state.entry] == player
            and tree.entry_infoset[state.entry] == state.infoset
            and tuple(tree.actions(int(tree.infoset_history[state.infoset]))) == state.actions
        ):
            raise ArgumentError(
                f"expected states that player {player} memorizes in this tree, got {shown(state)}"
            )
    entries = ((s.actions, tree.memorized_row(s.entry), s.reach, s.net_gain, s.alternatives) for s in states)
    return _book_of(tree.game, player, entries)


def certified_book(found: CertifiedPrecomputation) -> Book:
    """Return the book of a result of `best_first_precomputation` in a `ChessGame`; worths are net gains."""
    reach, worth = found.reach.tolist(), found.net_gain.tolist()
    entries = zip(found.histories, found.rows, reach, worth, found.alternatives, strict=True)
    return _book_of(found.game, found.player, entries)


def _book_of(
    game: pyspiel.Game,
    player: int,
    entries: Iterable[tuple[Sequence[int], Mapping[int, float], float, float, Sequence[Alternative]]],
) -> Book:
    """Return the book of memorized histories of a `ChessGame`.

    Args:
      game: the game in which histories start.
      player: whose book it is.
      entries: (actions from the start, {action: probability} to play, reach, worth, other candidate moves) of
        each history.
    """
    positions = []
    for actions, row, reach, worth, alternatives in entries:
        others = [(move_of(action), other.loss) for other in alternatives for action in other.row]
        moves = sorted(row.items(), key=lambda entry: (-entry[1], entry[0]))
        positions.append(
            BookPosition(
                history=tuple(move_of(action) for action in actions),
                moves=tuple(BookMove(move_of(action), p) for action, p in moves),
                reach=reach,
                worth=worth,
                others=tuple(others),
            )
        )
    side = chess.WHITE if player == 0 else chess.BLACK
    return Book(game.start_board, side, positions)
