"""From settings and flags to a book: by the whole tree, best first, or by games between both sides' play."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess
import chess_runs
import numpy as np
import preparation_plots
from absl import flags
from preparation_flags import plan_sizes, whole_tree

from precomp_games import HistoryTree
from precomp_games.algorithms import (
    BestPrecomputation,
    best_first_precomputation,
    best_of_frontier,
    best_precomputation,
    confirmed_precomputation,
    memory_frontier,
    precomputation_plan,
    value_against_components,
)
from precomp_games.chess import (
    Book,
    MatchResult,
    PreparationSettings,
    board_key,
    certified_book,
    kept_entries,
    move_of,
    position_key,
    preparation_book,
    preparation_tree,
    read_repertoire,
)

_SHORT = 10  # own moves; with fewer, what keeps a book empty may be the horizon
_MOST = 150  # positions, where games are played and nothing else is said
_UNPREPARED = 100  # games at most that say what there is without a book
_TEACHING = 6  # one game in so many teaches what positions are worth
_SECONDS = 120.0  # for each integer program, of which there are some with a price per position

FLAGS = flags.FLAGS


class Prepared(NamedTuple):
    """A book, and what it is worth to the preparing side, in [0, 1].

    Attributes:
      value: utility less the penalties.
      gains: of each of the book's positions.
      told: lines about how it was found.
      numbers: the same for result.json.
      unprepared: the same without the book; where the utility comes from games, so does this.
      error: standard error of the utility, where it comes from games.
      learned: how many positions have to be learned, where they are not all of the book's.
    """

    book: Book
    value: float
    utility: float
    unprepared: float
    gains: Sequence[float]
    told: str
    numbers: dict[str, Any]
    error: float | None = None
    learned: int | None = None

    @property
    def to_learn(self) -> int:
        """How many positions, or histories, are paid for."""
        return len(self.book) if self.learned is None else self.learned


def prepared(
    settings: PreparationSettings, engines: chess_runs.Engines, folder: pathlib.Path, budget: int | None
) -> Prepared:
    """The book of these settings and of the flags, within a budget."""
    for line in engines.misfits(settings):
        print(line, flush=True)
    if settings.evaluation == "calibrated" and settings.menu and FLAGS.play_budget and not whole_tree():
        for flag in ("order", "gap"):
            if FLAGS[flag].present:
                raise ValueError(f"--{flag}: expected --play_budget=0 beside it, since games set the order")
        return by_games(settings, engines, budget)
    if settings.menu > 1:
        return by_best_first(settings, engines, budget)
    return by_tree(settings, engines, folder, budget)


def by_tree(
    settings: PreparationSettings, engines: chess_runs.Engines, folder: pathlib.Path, budget: int | None
) -> Prepared:
    """All that the penalty allows is looked at, and the best book of it is taken."""

    def announce(positions: int, games: int) -> None:
        most = positions * games * settings.max_plies
        print(
            f"Roll-outs: {games} games from each of {positions} positions, at most {most} searches, since "
            "what comes up again is not searched again; a larger --rollout_epsilon takes fewer.",
            flush=True,
        )

    def expanded(keep: Mapping[str, chess.Move] | None) -> HistoryTree:
        with engines.progress("Searching") as progress:
            return preparation_tree(
                settings,
                engines.analyst,
                engines.opponent,
                progress,
                policies=engines.policies(settings),
                keep=keep,
                announce=announce,
                max_memory=FLAGS.max_memory,
            )

    kept = kept_moves(FLAGS.keep, settings) if FLAGS.keep else None
    tree, player, score = expanded(kept), settings.player, chess_runs.score_name(settings)
    known = None if kept is None else kept_entries(tree, player)
    how: dict[str, Any] = {"price": settings.price, "keep": known}
    told = f"{tree.work['expanded']} histories were looked at"
    numbers: dict[str, Any] = {}
    if FLAGS.plan:
        steps = precomputation_plan(tree, player, plan_sizes(), time_limit=_SECONDS, **how)
        best, learned = steps[-1].chosen, steps[-1].learned
        told += "\n" + preparation_plots.told_plan(steps, score, folder)
        numbers["plan"] = [
            {"budget": s.budget, "learned": s.learned, "utility": s.chosen.utility, "best": s.best.utility}
            for s in steps
        ]
    elif budget is None:
        best = best_precomputation(tree, player, time_limit=_SECONDS, **how)
        learned = round(best.paid)
    else:
        frontier = memory_frontier(tree, player, **how)
        best = best_of_frontier(frontier, budget, time_limit=_SECONDS)
        learned = round(best.paid)
        told += "\n" + preparation_plots.told_budget(frontier, best, score, folder)
    if kept is not None and known is not None:
        room = steps[-1].budget if FLAGS.plan else budget
        free = best_precomputation(
            expanded(None), player, price=settings.price, budget=room, time_limit=_SECONDS
        )
        comes = int(np.isin(best.memorization_set, known).sum())
        told += "\n" + _told_kept(len(kept), comes, learned, best, free)
        numbers["kept"] = {
            "given": len(kept),
            "histories": comes,
            "learned": learned,
            "free_utility": free.utility,
            "free_learned": round(free.paid),
        }
    if not best.size:
        told += f"\n\n{_why_nothing(settings, budget, by_rules=False)}"
    each = [] if tree.mixture is None else value_against_components(best).tolist()
    if each:
        told += f"\n{'Against each':<20}{', '.join(f'{value:.4f}' for value in each)}, in the order given"
    return Prepared(
        preparation_book(tree, player, best.states()),
        best.value,
        best.utility,
        best.unprepared,
        best.gain.tolist(),
        told,
        {
            **numbers,
            "truncation_loss": best.truncation_loss,
            **({"components": each} if each else {}),
            "tree": {
                "histories": tree.num_histories,
                "positions": tree.num_positions,
                "fingerprint": tree.fingerprint,
            },
        },
        learned=learned,
    )


def _told_kept(given: int, comes: int, new: int, best: BestPrecomputation, free: BestPrecomputation) -> str:
    """What it costs or saves to keep what is known."""
    more, less = best.utility - free.utility, round(free.paid) - new
    fewer = f"{abs(less)} positions {'less' if less >= 0 else 'more'} to learn"
    return (
        f"Kept                {comes} histories of the book are known, by {given} positions of --keep\n"
        f"If nothing is kept  {free.utility:.4f} with {round(free.paid)} positions to learn: keeping them is "
        f"worth {more:+.4f}, with {fewer}"
    )


def kept_moves(paths: Sequence[str], settings: PreparationSettings) -> dict[str, chess.Move]:
    """The preparing side's moves in files of its own book, by position; of several, the first."""
    side = chess.WHITE if settings.player == 0 else chess.BLACK
    with common.told_as("keep", "PGN or Polyglot files"):
        book = read_repertoire(paths, side, fen=settings.fen)
    print(f"Kept                {book.report}", flush=True)
    return {epd: position.moves[0] for epd, position in book.positions.items()}


def by_best_first(settings: PreparationSettings, engines: chess_runs.Engines, budget: int | None) -> Prepared:
    """Where there are several moves to choose among, lines are looked at in the order of their promise."""
    policies = engines.policies(settings)
    with common.progress("Searching", "evaluations") as show:
        found = best_first_precomputation(
            settings.game(),
            policies.sigma_pre,
            policies.sigma,
            settings.penalty,
            settings.player,
            policies.leaf_value,
            gap=FLAGS.gap,
            order=FLAGS.order,
            budget=budget,
            max_evaluations=FLAGS.max_evaluations,
            position_key=position_key,
            min_probability=settings.min_probability,
            progress=lambda done, lower, upper: show(done, f"worth {lower:.4f} to {upper:.4f}"),
        )
    utility = found.lower + found.penalty * found.size
    told = (
        f"{found.work['opened']} positions were opened, {found.work['evaluations']} evaluated\n"
        f"{'Any such book':<20}has {found.upper:.4f} at most, by these scores"
    )
    if found.work["evaluations"] >= FLAGS.max_evaluations:
        told += "\nStopped at --max_evaluations: what was not evaluated by then counts as lost"
    if not found.size:
        told += (
            "\n\nNo move was found that is worth learning; lower --penalty, or raise --budget or --max_plies."
        )
    return Prepared(
        certified_book(found),
        found.lower,
        utility,
        utility - float(found.gain.sum()),
        found.gain.tolist(),
        told,
        {"upper": found.upper, "order": FLAGS.order, "work": found.work},
    )


def by_games(settings: PreparationSettings, engines: chess_runs.Engines, budget: int | None) -> Prepared:
    """Lines are looked at in the order of their promise, and games say what they are worth."""
    policies = engines.policies(settings)
    budget = _MOST if budget is None else budget
    teaching = FLAGS.play_budget // _TEACHING
    promising = max(2, FLAGS.play_budget - teaching)
    with common.progress("Searching", "evaluations") as show:
        found = confirmed_precomputation(
            settings.played_game(),
            policies.sigma_pre,
            policies.sigma,
            settings.penalty,
            settings.player,
            policies.leaf_value,
            budget=budget,
            games=teaching,
            promise_games=promising,
            prior_games=policies.leaf_value.utility.prior_games,
            max_evaluations=FLAGS.max_evaluations,
            position_key=board_key,
            min_probability=settings.min_probability,
            seed=settings.seed,
            progress=lambda done, games, what: show(done, f"{games} games, {what}"),
        )
    preparation = found.preparation
    book, gains = certified_book(preparation), preparation.gain.tolist()
    taught, games, unprepared, ends = sum(r.games for r in found.rounds), 0, found.promise, found.interval
    if book.positions:
        without = _without_book(book, settings, engines, min(_UNPREPARED, promising))
        games, unprepared, ends = len(without.games), without.score, without.interval
        book, gains = _gaining(book, gains, found.unprepared - unprepared)
    told = (
        f"{preparation.work['opened']} positions were opened, {preparation.work['evaluations']} evaluated\n"
        f"Games               {taught} to learn what positions are worth, {found.games} more for the promise "
        f"(95 %: {_ends(found.interval)})"
    )
    if book.positions:
        told += f"\n                    {games} more without the book (95 %: {_ends(ends)})"
    else:
        told += f"\n\n{_why_nothing(settings, budget, by_rules=True)}"
    return Prepared(
        book,
        found.promise - settings.penalty * len(book),
        found.promise,
        unprepared,
        gains,
        told,
        {
            "standard_error": found.standard_error,
            "interval": found.interval,
            "unprepared_interval": ends,
            "games": {"taught": taught, "promise": found.games, "unprepared": games},
            "work": preparation.work,
            "rounds": [dataclasses.asdict(each) for each in found.rounds],
            "stops": [
                {
                    "after": [move_of(action).uci() for action in stop.history],
                    "reach": stop.reach,
                    "value": stop.value,
                    "games": stop.games,
                }
                for stop in found.stops
            ],
        },
        found.standard_error,
    )


def _without_book(
    book: Book, settings: PreparationSettings, engines: chess_runs.Engines, games: int
) -> MatchResult:
    """Games without a book: the first of a match with this seed, which then finds their searches made.

    What an evaluation says of the start may be of another world: of another opponent than it was fitted to.
    """
    empty = Book(book.start, book.side, ())
    return chess_runs.match("Unprepared", empty, settings, engines, games=games, seed=settings.seed)


def _gaining(book: Book, gains: Sequence[float], more: float) -> tuple[Book, list[float]]:
    """A book and its gains, where there is less without it than its values said, by `more`.

    That is what the first positions add to nothing, by how often they are reached, so that gains still come
    to what the book's values are worth more than `unprepared`.
    """
    first = [k for k, position in enumerate(book.positions) if len(position.history) < 2]
    reach = sum(book.positions[k].reach for k in first)
    added = {k: more * book.positions[k].reach / reach for k in first}
    positions = [
        dataclasses.replace(position, worth=position.worth + added.get(k, 0.0))
        for k, position in enumerate(book.positions)
    ]
    return Book(book.start, book.side, positions), [g + added.get(k, 0.0) for k, g in enumerate(gains)]


def _ends(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}"


def _why_nothing(settings: PreparationSettings, budget: int | None, *, by_rules: bool) -> str:
    """Why the book is empty, and what would change that; `by_rules` if games end by the rules of chess."""
    start = settings.game().new_initial_state()
    if start.is_terminal():
        return "The game is over where it starts: there is nothing to learn."
    first = 0 if start.current_player() == settings.player else 1
    own_moves = len(range(first, settings.max_plies, 2))
    within = f"within --max_plies={settings.max_plies}"
    if own_moves == 0:
        return f"It is never {FLAGS.side.capitalize()}'s move {within}: there is nothing to learn."
    if budget == 0:
        return "Nothing is worth learning at this budget; raise --budget to learn more."
    if own_moves == 1 and not by_rules:
        return f"No move is worth learning {within}, since a draw follows; raise it to learn more."
    short = (
        f", or raise --max_plies={settings.max_plies}{'' if by_rules else ', after which games are draws,'}"
    )
    more = short * (own_moves < _SHORT)
    return f"Nothing is worth learning at this penalty; lower --penalty{more} to learn more."
