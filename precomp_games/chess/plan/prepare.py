"""From settings to a preparation: by the whole tree, best first, or by games between both sides' play."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import chess
import numpy as np
import numpy.typing as npt

from precomp_games import algorithms
from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.deadlines import OutOfTimeError, deadline, limited
from precomp_games.algorithms.preparation.confirmed import ConfirmedPrecomputation
from precomp_games.algorithms.preparation.evaluated_search import ORDERS
from precomp_games.algorithms.preparation.partial_tree import CertifiedPrecomputation
from precomp_games.chess.data.book import Book, BookExit
from precomp_games.chess.data.move_counts import CountsPolicy
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.game import RULES_OF_CHESS, ChessState, action_of, board_key, move_of, position_key
from precomp_games.chess.model.engine_policies import EngineEvaluation, pov_score
from precomp_games.chess.model.model import (
    Engines,
    ModelFiles,
    PreparationPolicies,
    book_choice,
    saved_time,
    searched,
)
from precomp_games.chess.model.opponents import GamesPolicy
from precomp_games.chess.model.played import ReplyGames, reply_games
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan import preparation, trees
from precomp_games.chess.plan.preparation import Preparation
from precomp_games.chess.play.match import book_exits
from precomp_games.policies.leaf_values import RolloutValues
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

_MOST = 150  # positions, if games are played and no budget is given
_UNPREPARED = 100  # games at most for the value without a book
_TELLING = 100  # games with a book, and without it, in a test whether it is better than none
_TEACHING = 6  # one game of six is for learning values of positions
_SECONDS = 120.0  # for each integer program, of which there are some with a price per position
_SOME_SECONDS = 10.0  # for each of many, in best-first search


@public
def prepare(
    settings: PreparationSettings,
    engines: Engines,
    *,
    budget: checks.NonNegativeInt | None = None,
    games: checks.NonNegativeInt = 1200,
    order: Annotated[str, checks.one_of(ORDERS)] = "optimistic",
    gap: checks.NonNegativeFloat = 0.001,
    max_evaluations: checks.PositiveInt = 20_000,
    plan: Annotated[Sequence[int], checks.each_of(int)] = (),
    keep: Mapping[str, chess.Move] | None = None,
    enough: Callable[[], bool] | None = None,
    improved: Callable[[Preparation], Any] | None = None,
) -> Preparation:
    """Find the best book of one side, and its value.

    Without a choice of moves (`settings.menu` 0 or 1, and no games), the whole tree within the penalty is
    searched for the best book. With a choice, lines are searched best first, up to `max_evaluations`; games
    correct a fitted evaluation, except with a price per position. With `settings.check_limit` a book that was
    found so, without games, is searched again, see `check` of `best_first_precomputation`.

    Args:
      settings: of the preparation.
      engines: engines of the searches.
      budget: learn at most so many positions, as well as possible; the penalty then only sets the search
        depth. None: as many as are worth the penalty, and 150 at most if games are played.
      games: for a fitted evaluation, largest number of games between both sides' play: a sixth is for
        learning values of positions, the others for the value of the book. 0: the evaluation alone is used.
      order: with a choice and without games, the order of lines, see `best_first_precomputation`.
      gap: there, the search stops when no book is better by more than this.
      max_evaluations: with a choice, the largest number of evaluations.
      plan: growing sizes of books each of which contains the one before (`precomputation_plan`).
      keep: known moves that stay, see `preparation_tree`.
      enough: with a choice of moves, called now and then; true stops the search: the best book so far is
        taken, and games determine its value. A whole tree is searched as far as the deadline allows.
      improved: called now and then with the best book so far: `search.unfinished` is true, no games have
        determined its value, and its exits are missing. For a whole tree, only if time is limited.

    Returns:
      The preparation. Its `search` is a `WholeTree`, `BestFirst` or `ByGames`. A book that a hundred games
      did not put above a hundred without one is refused: the preparation then has no book.

    Raises:
      ValueError, EngineError: settings, engines, the store or another argument are not valid.
    """
    other_way, by_position = bool(plan) or keep is not None, settings.price == "positions"
    whole_tree = other_way or settings.distrust > 0.0
    if (whole_tree and settings.menu > 1) or ((other_way or by_position) and settings.distrust):
        raise ArgumentError(
            "expected settings.menu to be 0 or 1 with a plan, a kept book or distrust, and no distrust with "
            f"these or a price per position, got menu={settings.menu} and distrust={settings.distrust:g}"
        )
    by_games = is_by_games(settings, games, whole_tree=whole_tree)
    if settings.check_limit is not None and (settings.menu < 2 or by_games):
        raise ArgumentError(
            "expected settings.menu of 2 or more, and no games, where settings.check_limit is given, got "
            f"menu={settings.menu} and {'games' if by_games else 'no games'}"
        )
    policies = engines.policies(settings)

    def so_far(made: Preparation) -> None:
        files = ModelFiles.of(settings, policies.sigma[1 - settings.player], policies.leaf_value)
        assert isinstance(made.search, preparation.WholeTree | preparation.BestFirst)
        search = dataclasses.replace(made.search, unfinished=True)
        if improved is not None:
            improved(dataclasses.replace(made, budget=budget, files=files, search=search))

    def estimated(found: CertifiedPrecomputation) -> None:
        how = preparation.BestFirst(work=found.work, learned=found.paid)
        so_far(_by_estimates(settings, engines, found, how))

    search: dict[str, Any] = {"max_evaluations": max_evaluations, "enough": enough}
    search |= {"min_probability": settings.min_probability, "improved": improved and estimated}
    if by_games:
        found = _by_games(settings, engines, budget, games, search)
    elif settings.menu > 1:
        search |= {"gap": gap, "order": order, "budget": budget, "price": settings.price}
        search |= {"position_key": board_key if by_position else position_key}
        search |= {"time_limit": _SOME_SECONDS, "check": _deeper(settings, engines, policies)}
        with limited(None):  # `enough` ends it, after a first step in any case
            best = algorithms.best_first_precomputation(
                *searched(policies, settings.game(), settings), **search
            )
        checked = best.stops if settings.check_limit else ()
        stops = [preparation.Stop(_uci(each[0]), *each[1:], 0) for each in checked]
        how = preparation.BestFirst(
            upper=best.upper, learned=best.paid, order=order, work=best.work, stops=stops
        )
        found = _by_estimates(settings, engines, best, how)
    elif enough is not None:
        raise ArgumentError("expected a choice of moves, or games, where enough is given, got the whole tree")
    else:

        def look(each: PreparationSettings) -> Preparation:
            made = _by_tree(each, engines, budget, plan, keep)
            if deadline() is not None:
                so_far(made)
            return made

        # A budget limits the book: the penalty then only sets the search depth.
        limits = bool(plan) or budget is not None
        found = trees.looked_far(settings, look, by_steps=limits and engines.can_search)
        if keep is not None:
            found = _beside_free(found, engines, plan[-1] if plan else budget)
    return with_exits(dataclasses.replace(found, budget=budget), engines, policies)


def is_by_games(settings: PreparationSettings, games: int, *, whole_tree: bool) -> bool:
    """Return whether games determine the book's value."""
    by_history = settings.price == "infosets" and not whole_tree
    return settings.kind.fitted and settings.menu > 0 and games > 0 and by_history


def with_exits(found: Preparation, engines: Engines, policies: PreparationPolicies) -> Preparation:
    """Add exits, engine evaluations and source games to the result, by the policies of its search."""
    with limited(None):  # nearly all searches are stored
        exits = exits_of(found.book, found.settings, policies, found.stops)
        return described(found, engines, policies, exits)


def described(
    found: Preparation,
    engines: Engines,
    policies: PreparationPolicies,
    exits: Sequence[BookExit],
    least: float = 0.0,
) -> Preparation:
    """Add exits, the facts that follow, and the analyst's evaluations of positions with this reach."""
    settings, book = found.settings, found.book
    opponent = policies.sigma[1 - settings.player]
    likely = [k for k, position in enumerate(book.positions) if position.reach >= least]
    boards = book.boards
    limit = settings.check_limit or settings.analyst_limit
    results = engines.analyst.search([boards[k].epd() for k in likely], limit, settings.multipv)
    evaluations = {
        book.positions[k].history: pov_score(result.lines[0], book.side)
        for k, result in zip(likely, results, strict=True)
    }
    clock = None
    if settings.evaluation == "people" and found.standard_error is None:
        clock = clock_gain(settings, exits)
    games: Mapping[tuple[chess.Move, ...], ReplyGames] = {}
    person = None
    if isinstance(opponent, GamesPolicy) and opponent.read.player is not None:
        how: dict[str, Any] = {"report": opponent.report, "table": opponent.table}
        games, person = reply_games(book, opponent.read, exits=exits, **how)
    return dataclasses.replace(
        found,
        exits=exits,
        clock=clock,
        evaluations=evaluations,
        games=games,
        person=person,
        files=ModelFiles.of(settings, opponent, policies.leaf_value),
    )


# -- where games leave a book ------------------------------------------------------------------------------


def clock_gain(settings: PreparationSettings, exits: Sequence[BookExit]) -> float:
    """Return the gain in score from the time that a book saves, given the exits' expected scores."""
    saved, game, gains = saved_time(settings), settings.game(), [0.0]
    for each in exits:
        if not each.over and each.promised is not None:
            state = game.new_initial_state()
            for move in each.history:
                state.apply_action(action_of(move))
            gains.append(each.reach * (saved.with_time(each.promised, state) - each.promised))
    return math.fsum(gains)


def exits_of(
    book: Book,
    settings: PreparationSettings,
    policies: PreparationPolicies,
    stops: Mapping[tuple[str, ...], float],
) -> list[BookExit]:
    """Return the exits of a book, with the preparation's values.

    Args:
      book: the book.
      settings: of its preparation.
      policies: of these settings.
      stops: learned values of exits, see `Preparation.stops`; elsewhere the evaluation is used.
    """
    value = None if isinstance(policies.leaf_value, RolloutValues) else policies.leaf_value
    return book_exits(
        book,
        policies.sigma[1 - settings.player],
        _Taught(stops, settings.player, value) if stops else value,
        horizon=RULES_OF_CHESS["max_plies"] if settings.kind.fitted else settings.max_plies,
        min_probability=settings.min_probability,
    )


@dataclasses.dataclass(frozen=True)
class _Taught:
    """Leaf values, White's: as learned, elsewhere by the evaluation."""

    stops: Mapping[tuple[str, ...], float]
    player: int
    leaf_value: Any

    def evaluate_batch(self, states: Sequence[ChessState]) -> list[float]:
        known = [self.stops.get(tuple(move.uci() for move in state.moves())) for state in states]
        unknown = [state for state, value in zip(states, known, strict=True) if value is None]
        others = iter(self.leaf_value.evaluate_batch(unknown))
        return [
            float(next(others)) if value is None else value if self.player == 0 else 1.0 - value
            for value in known
        ]


# -- the whole tree ----------------------------------------------------------------------------------------


def _by_tree(
    settings: PreparationSettings,
    engines: Engines,
    budget: int | None,
    plan: Sequence[int],
    keep: Mapping[str, chess.Move] | None,
) -> Preparation:
    """Search the whole tree within the penalty for the best book."""
    players, policies = (engines.analyst, engines.opponent), engines.policies(settings)
    tree = trees.preparation_tree(settings, *players, policies=policies, keep=keep)
    player, frontier = settings.player, None
    if settings.distrust:
        return _robust(tree, settings, engines, budget)
    known = None if keep is None else trees.kept_entries(tree, player)
    how: dict[str, Any] = {"price": settings.price, "keep": known}
    steps: list[preparation.PlanStep] = []
    kept = None
    if plan:
        books = algorithms.precomputation_plan(tree, player, plan, time_limit=_SECONDS, **how)
        best = books[-1].chosen
        steps = [preparation.PlanStep(e.budget, e.learned, e.chosen.utility, e.best.utility) for e in books]
    elif budget is None:
        best = algorithms.best_precomputation(tree, player, time_limit=_SECONDS, **how)
    else:
        frontier = algorithms.memory_frontier(tree, player, **how)
        best = algorithms.best_of_frontier(frontier, budget, time_limit=_SECONDS)
    learned = steps[-1].learned if steps else round(best.paid)
    states = list(best.states())
    if keep is not None and known is not None:
        alone = algorithms.best_precomputation(tree, player, budget=0, time_limit=_SECONDS, **how)
        added = np.flatnonzero(~np.isin([state.entry for state in states], known)).tolist()
        kept = preparation.Kept(len(keep), len(states) - len(added), learned, alone.utility, added)
    search = preparation.WholeTree(
        plan=steps,
        kept=kept,
        learned=learned,
        truncation_loss=best.truncation_loss,
        components=() if tree.mixture is None else algorithms.value_against_components(best).tolist(),
        tree=looked_at(tree),
    )
    book, gains = trees.preparation_book(tree, player, states), best.gain.tolist()
    worth = best.utility, best.unprepared, best.value
    return Preparation(settings, book, engines.ids, *worth, gains, search=search, frontier=frontier)


def _beside_free(found: Preparation, engines: Engines, budget: int | None) -> Preparation:
    """Add the value of the best book that keeps nothing, if there is time."""
    settings, search = found.settings, found.search
    assert isinstance(search, preparation.WholeTree) and search.kept is not None
    players, policies = (engines.analyst, engines.opponent), engines.policies(settings)
    with contextlib.suppress(OutOfTimeError):
        tree = trees.preparation_tree(settings, *players, policies=policies)
        how: dict[str, Any] = {"price": settings.price, "budget": budget, "time_limit": _SECONDS}
        free = algorithms.best_precomputation(tree, settings.player, **how)
        kept = dataclasses.replace(search.kept, free_utility=free.utility, free_learned=round(free.paid))
        return dataclasses.replace(found, search=dataclasses.replace(search, kept=kept))
    return found


def _robust(
    tree: HistoryTree, settings: PreparationSettings, engines: Engines, budget: int | None
) -> Preparation:
    """Return the most valuable book against the worst opponent around the model."""
    player = settings.player
    shares = distrusted_shares(tree, settings, engines.policies(settings).sigma[1 - player])
    best = algorithms.robust_precomputation(tree, player, shares, budget=budget)
    states = algorithms.memorized_states(MetaStrategy.of_set(tree, player, best.memorization_set))
    gains = [state.gain for state in states]
    worst = preparation.AtWorst(best.utility, best.unprepared)
    search = preparation.WholeTree(learned=best.paid, robust=worst, tree=looked_at(tree))
    worth = best.nominal, best.nominal - math.fsum(gains), best.nominal - best.penalty * best.paid
    book = trees.preparation_book(tree, player, states)
    return Preparation(settings, book, engines.ids, *worth, gains, search=search)


def distrusted_shares(
    tree: HistoryTree, settings: PreparationSettings, opponent: Any
) -> npt.NDArray[np.float64]:
    """Return float64[n]: contamination of the opponent's model at each history."""
    shares = np.full(tree.num_histories, settings.distrust)
    if not isinstance(opponent, CountsPolicy):
        return shares
    states = {0: tree.game.new_initial_state()}
    rival = 1 - settings.player
    for history in np.flatnonzero(tree.num_children > 0).tolist():
        state = states.pop(history)
        if tree.player[history] == rival:
            shares[history] *= opponent.prior_share(state)
        for child in tree.children(history):
            if tree.num_children[child]:
                states[child] = state.child(int(tree.action[child]))
    return shares


def looked_at(tree: HistoryTree) -> preparation.LookedAt:
    """Return a tree's size."""
    expanded = int(tree.work["expanded"])
    return preparation.LookedAt(expanded, tree.num_histories, tree.num_positions, tree.fingerprint)


# -- best first --------------------------------------------------------------------------------------------


def _deeper(
    settings: PreparationSettings, engines: Engines, policies: PreparationPolicies
) -> tuple[Any, Any] | None:
    """Return the candidate moves and leaf values of the analyst's searches at `check_limit`."""
    if settings.check_limit is None:
        return None
    value, limit = policies.leaf_value, settings.check_limit
    if isinstance(value, EngineEvaluation):
        if value.multipv == 1 and limit.nodes is not None:  # as many nodes as each of the menu's lines has
            limit = SearchLimit(nodes=-(-limit.nodes // settings.multipv))
        value = dataclasses.replace(value, limit=limit)
    deeper = dataclasses.replace(settings, analyst_limit=settings.check_limit)
    return book_choice(deeper, engines.analyst), value


def _by_estimates(
    settings: PreparationSettings,
    engines: Engines,
    found: CertifiedPrecomputation,
    search: preparation.BestFirst,
) -> Preparation:
    """Return a preparation with values by evaluations, without games."""
    utility = min(found.lower + found.penalty * found.paid, 1.0)  # by rounding, it may be above
    worth = utility, max(utility - float(found.gain.sum()), 0.0), found.lower
    book, gains = trees.certified_book(found), found.gain.tolist()
    return Preparation(settings, book, engines.ids, *worth, gains, search=search)


# -- by games ----------------------------------------------------------------------------------------------


def _by_games(
    settings: PreparationSettings, engines: Engines, budget: int | None, games: int, search: Mapping[str, Any]
) -> Preparation:
    """Search lines best first, with values from games.

    `search`: further arguments of the solver.
    """
    policies = engines.policies(settings)
    teaching = games // _TEACHING
    promising = max(2, games - teaching)
    found = algorithms.confirmed_precomputation(
        *searched(policies, settings.played_game(), settings),
        budget=_MOST if budget is None else budget,
        games=teaching,
        promise_games=promising,
        prior_games=policies.leaf_value.utility.prior_games,
        position_key=board_key,
        seed=settings.seed,
        **search,
    )
    certified = found.preparation
    book, gains = trees.certified_book(certified), certified.gain.tolist()
    promise, error, interval, refused = found.promise, found.standard_error, found.interval, None
    unplayed, unprepared, ends = 0, promise, interval
    if book.positions:
        # An evaluation of the start may be wrong here: it was fitted to another opponent. These are the first
        # games of a match with this seed, which then finds them searched.
        empty = Book(book.start, book.side, ())
        without = engines.match(empty, settings, min(_UNPREPARED, promising), seed=settings.seed)
        unplayed, unprepared, ends = len(without.games), without.score, without.interval
        if promise > unprepared or min(found.games, unplayed) < _TELLING:
            book, gains = _gaining(book, gains, found.unprepared - unprepared)
        else:  # a book that its own games do not put above none is no advice
            refused = preparation.Refused(len(book), promise, interval)
            book, gains, promise, error, interval = empty, [], unprepared, without.standard_error, ends
    taught = sum(each.games for each in found.rounds)
    how = preparation.ByGames(
        standard_error=error,
        interval=interval,
        unprepared_interval=ends,
        games={"taught": taught, "promise": found.games, "unprepared": unplayed},
        work=certified.work,
        rounds=[dataclasses.asdict(each) for each in found.rounds],
        stops=stops_of(found),
        refused=refused,
    )
    worth = promise, unprepared, promise - settings.penalty * len(book)
    return Preparation(settings, book, engines.ids, *worth, gains, search=how)


def stops_of(found: ConfirmedPrecomputation) -> list[preparation.Stop]:
    """Return the exits of a book, with values learned from games."""
    return [preparation.Stop(_uci(stop.history), stop.reach, stop.value, stop.games) for stop in found.stops]


def _uci(actions: Sequence[int]) -> list[str]:
    return [move_of(action).uci() for action in actions]


def _gaining(book: Book, gains: Sequence[float], more: float) -> tuple[Book, list[float]]:
    """Return a book and its gains, if the value without it is lower than its leaf values imply, by `more`.

    The difference is a gain of the first positions, in proportion to their reach, so that gains still sum to
    the difference between the book's value and `unprepared`.
    """
    first = [position.reach if len(position.history) < 2 else 0.0 for position in book.positions]
    total = sum(first)
    added = [more * reach / total for reach in first]
    both = zip(book.positions, added, strict=True)
    positions = [dataclasses.replace(position, worth=position.worth + each) for position, each in both]
    return Book(book.start, book.side, positions), [g + each for g, each in zip(gains, added, strict=True)]
