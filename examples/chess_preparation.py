r"""Prepares one side of a chess game against one opponent, and writes the book.

The opponent is an engine with a small budget that plays its k best moves with probabilities proportional
to exp(cp / r). We may memorize what the same engine recommends with a larger budget, and pay a penalty for
each position. Which positions are worth learning, and which of the good moves there? (Algorithm 1 of
"Modeling Precomputation in Games Played Under Computational Constraints", with a choice of moves.)

  python examples/chess_preparation.py --side=white --r=10 --output_dir=output/white

writes book.bin (Polyglot), book.pgn (one game with variations) and result.json. What positions are worth is
a fitted evaluation, corrected by games between both sides' play (--play_budget), and what the book promises
is what such games score; --evaluation has the paper's evaluations, which play no games. With --budget=50 it
learns the best 50 positions. With --menu=1 or 0, an evaluation of the paper's, and a budget, it also says
and plots what 50 more would be worth: memory.csv, memory.png and memory.svg. It ends with a match
(--match_games): what the book promised beside what it scored; examples/book_match.py looks closer. --report
writes all of it as a page to look at, report.html, and --export=lichess,pgn,anki,csv as files to study with:
studies, arrows, cards and a table. examples/book_report.py does both with books that are there.

Where the whole tree is looked at (--menu=1 or 0, without games), a position may have one price however it
is reached (--price=positions); what is known already costs nothing and stays (--keep=mine.pgn); and
--plan=10,20,50 makes books of these sizes, each of which contains the one before: plan.csv, plan.png.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess
import chess.pgn
import chess_runs
import numpy as np
from absl import flags

from precomp_games import HistoryTree, write_together
from precomp_games.algorithms import (
    ORDERS,
    BestPrecomputation,
    MemoryFrontier,
    PlanStep,
    best_first_precomputation,
    best_of_frontier,
    best_precomputation,
    confirmed_precomputation,
    memory_frontier,
    precomputation_plan,
    value_against_components,
)
from precomp_games.chess import (
    EXPORTS,
    MATCH_PLIES,
    Book,
    BookExit,
    ChessState,
    EngineError,
    GamesPolicy,
    MatchResult,
    PreparationPolicies,
    PreparationSettings,
    ReportBook,
    ReportMatch,
    WrittenPreparation,
    board_key,
    book_exits,
    certified_book,
    kept_entries,
    move_of,
    position_key,
    preparation_book,
    preparation_tree,
    read_preparation,
    read_repertoire,
    reply_games,
    write_exports,
    write_pgn,
    write_polyglot,
    write_report,
)

_SHORT = 10  # own moves; with fewer, what keeps a book empty may be the horizon
_CHOICE = 8  # moves on a menu, where games are played and nothing else is said
_MOST = 150  # positions, where games are played and nothing else is said
_TEACHING = 6  # one game in so many teaches what positions are worth
_SECONDS = 120.0  # for each integer program, of which there are some with a price per position
_MORE = 50  # positions on top of the budget, of which it is told what they would be worth

FLAGS = flags.FLAGS
_SIDE = flags.DEFINE_enum("side", "white", ["white", "black"], "Who prepares.")
_R = flags.DEFINE_list(
    "r",
    ["10"],
    "Randomness of the opponent, in centipawns; 0.1 is predictable, 100 costs a pawn. Several, such as "
    "5,10,40: one of these opponents is drawn for the whole game, and the book is for all of them.",
)
_R_WEIGHTS = flags.DEFINE_list(
    "r_weights", [], "How often each of several opponents is drawn, such as 1,2,1. Default: equally often."
)
_BUDGET = flags.DEFINE_integer(
    "budget",
    None,
    "Learn at most so many positions, as well as possible. --penalty then only says how far is looked: the "
    "smaller, the less may be missed. Default: 150 where games are played, else as many as are worth it.",
    lower_bound=0,
)
_ORDER = flags.DEFINE_enum(
    "order",
    "optimistic",
    list(ORDERS),
    "With --menu of 2 or more and without games, which lines are looked at first: those that promise most, "
    "which is quick, or those that settle what the best book is worth.",
)
_GAP = flags.DEFINE_float(
    "gap", 0.001, "With --menu of 2 or more and without games: stop when no book is worth more by this."
)
_MAX_EVALUATIONS = flags.DEFINE_integer(
    "max_evaluations", 20_000, "With --menu of 2 or more: stop after so many evaluations.", lower_bound=1
)
_PLAY_BUDGET = flags.DEFINE_integer(
    "play_budget",
    1200,
    "With --evaluation=calibrated: games between both sides' play. A sixth of them at most teaches what "
    "positions are worth; the others say what the book is worth, as many as that takes. 0: none, and the "
    "evaluation is taken at its word.",
    lower_bound=0,
)
_PRICE = flags.DEFINE_enum(
    "price",
    "infosets",
    ["infosets", "positions"],
    "What --penalty is paid for, and --budget counts: each history, or each position, however it is reached.",
)
_KEEP = flags.DEFINE_multi_string(
    "keep",
    [],
    "A file of what is known already, PGN with variations or Polyglot (.bin): its moves of the preparing "
    "side are in the book wherever it comes to them, and cost nothing. May be repeated.",
)
_PLAN = flags.DEFINE_list(
    "plan",
    [],
    "Numbers of positions that grow, such as 10,20,50: what to learn first, and what then. Each book has in "
    "it the one before.",
)
_LINES = flags.DEFINE_integer("lines", 12, "How many lines of the book to print.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/chess_preparation", "Where files go.")
_REPORT = flags.DEFINE_bool("report", False, "Also write a page to look at the book with: report.html.")
_EXPORT = flags.DEFINE_list(
    "export", [], f"Also write the book for study: {', '.join(EXPORTS)}, or several of them."
)
_EXPORT_STORE = flags.DEFINE_string(
    "export_store", None, "Also write the searches that this run needs to a store of their own."
)
common.define_chess_flags()
chess_runs.define_opponent_flag()
common.define_memory_flag()
chess_runs.define_menu_flags(
    None, "Default: 8 with the calibrated evaluation, which games correct, and otherwise 1."
)
chess_runs.define_match_flags()
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(chess_runs)
FLAGS.set_default("evaluation", "calibrated")


def settings_of(player: int) -> PreparationSettings:
    """The settings of the flags."""
    menu = FLAGS.menu
    if menu is None:
        menu = _CHOICE if FLAGS.evaluation == "calibrated" and not whole_tree() else 1
    choice = (menu, FLAGS.menu_window_cp)
    randomness, weights = opponents()
    settings = chess_runs.settings(player, randomness, weights=weights, evaluated=menu > 1, menu=choice)
    if whole_tree() and menu > 1:
        raise ValueError(f"--menu: expected 0 or 1 with --{whole_tree()}, got {menu}")
    if _PLAN.value:
        plan_sizes()  # a wrong one is told before any work
    if _PLAN.value and _BUDGET.value is not None:
        raise ValueError("--plan: expected no --budget beside it, since the plan says how much is learned")
    return dataclasses.replace(settings, price=_PRICE.value)


def whole_tree() -> str:
    """A flag that needs the whole tree, the empty string where none is given."""
    given = {"price": _PRICE.value != "infosets", "keep": bool(_KEEP.value), "plan": bool(_PLAN.value)}
    return next((flag for flag, is_given in given.items() if is_given), "")


def opponents() -> tuple[float | list[float], list[float]]:
    """r of --r, or several of them, and their --r_weights."""
    each = common.positive_numbers(_R)
    weights = common.positive_numbers(_R_WEIGHTS) if _R_WEIGHTS.value else []
    if len(weights) not in (0, len(each)):
        raise ValueError(
            f"--r_weights: expected {len(each)} numbers, one for each --r, got {','.join(_R_WEIGHTS.value)!r}"
        )
    return (each[0], []) if len(each) == 1 else (each, weights)


class Prepared(NamedTuple):
    """A book, and what it is worth to the preparing side, in [0, 1].

    Attributes:
      value: utility less the penalties.
      gains: of each of the book's positions.
      told: lines about how it was found.
      numbers: the same for result.json.
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


def result_json(
    settings: PreparationSettings, engines: chess_runs.Engines, found: Prepared, left: Sequence[BookExit]
) -> dict[str, Any]:
    """The result for programs; utilities are the preparing side's, in [0, 1].

    The opponent's replies are in what is said of the exits, `left`: how likely a reply is, is what leaves
    the book behind it by what leaves the book behind all replies.
    """
    return {
        "settings": settings.as_dict(),
        "analyst": engines.analyst.engine_id,
        "opponent": engines.opponent.engine_id,
        "value": found.value,
        "utility": found.utility,
        "unprepared": found.unprepared,
        "score": chess_runs.score_name(settings, played=found.error is not None),
        "size": len(found.book),
        "distinct_positions": found.book.distinct_positions,
        "budget": _BUDGET.value,
        **found.numbers,
        "memorized": [
            {
                "after": [move.uci() for move in position.history],
                "play": {play.move.uci(): play.probability for play in position.moves},
                "instead": {move.uci(): -loss for move, loss in position.others},
                "reach": position.reach,
                "gain": float(gain),
                "net_gain": position.worth,
                "evaluation": evaluation,
            }
            for position, gain, evaluation in zip(
                found.book.positions, found.gains, evaluations(found.book, settings, engines), strict=True
            )
        ],
        "exits": [
            {
                "after": [move.uci() for move in each.history],
                "over": each.over,
                "reach": each.reach,
                "promised": each.promised,
            }
            for each in left
        ],
        "replies": games_behind(found.book, left, engines.policies(settings).sigma[1 - settings.player]),
    }


def evaluations(
    book: Book, settings: PreparationSettings, engines: chess_runs.Engines
) -> Iterable[dict[str, int | None]]:
    """What the analyst said of each position when it chose a move there, for our side."""
    epds = []
    for position in book.positions:
        board = book.start.copy()
        for move in position.history:
            board.push(move)
        epds.append(board.epd())
    for result in engines.analyst.search(epds, settings.analyst_limit, settings.multipv):
        best = result.lines[0]
        yield {"cp": best.cp} if best.mate is None else {"mate": best.mate}


def games_behind(book: Book, left: Sequence[BookExit], opponent: Any) -> list[dict[str, Any]]:
    """The games behind the replies of an opponent who is a person, as its games say."""
    if not isinstance(opponent, GamesPolicy) or opponent.read["player"] is None:
        return []
    with common.progress("Games behind replies", "bytes") as show:
        found = reply_games(book, exits=left, progress=lambda done, size: show(done), **opponent.read)
    return [
        {
            "after": [move.uci() for move in history],
            "count": behind.count,
            "games": [dataclasses.asdict(game) for game in behind.games],
        }
        for history, behind in found.items()
    ]


def read_folder(folder: str) -> WrittenPreparation:
    """What this example has written to a folder that --book_dir names."""
    try:
        return read_preparation(folder)
    except ValueError as error:
        raise ValueError(f"--book_dir: {str(error).partition(': ')[2]}") from None


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

    kept = kept_moves(_KEEP.value, settings) if _KEEP.value else None
    tree, player, score = expanded(kept), settings.player, chess_runs.score_name(settings)
    known = None if kept is None else kept_entries(tree, player)
    how: dict[str, Any] = {"price": settings.price, "keep": known}
    told = f"{tree.work['expanded']} histories were looked at"
    numbers: dict[str, Any] = {}
    if _PLAN.value:
        steps = precomputation_plan(tree, player, plan_sizes(), time_limit=_SECONDS, **how)
        best, learned = steps[-1].chosen, steps[-1].learned
        told += "\n" + _told_plan(steps, score, folder)
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
        told += "\n" + _told_budget(frontier, best, score, folder)
    if kept is not None and known is not None:
        room = steps[-1].budget if _PLAN.value else budget
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


def plan_sizes() -> list[int]:
    """The numbers of --plan."""
    sizes = common.positive_numbers(_PLAN)
    growing = all(after > before for before, after in itertools.pairwise(sizes))
    if not growing or any(size != int(size) for size in sizes):
        raise ValueError(f"--plan: expected numbers of positions that grow, got {','.join(_PLAN.value)!r}")
    return list(map(int, sizes))


def kept_moves(paths: Sequence[str], settings: PreparationSettings) -> dict[str, chess.Move]:
    """The preparing side's moves in files of its own book, by position; of several, the first."""
    side = chess.WHITE if settings.player == 0 else chess.BLACK
    try:
        book = read_repertoire(paths, side, fen=settings.fen)
    except ValueError as error:
        raise ValueError(f"--keep: {str(error).partition(': ')[2]}") from None
    except OSError as error:
        raise ValueError(
            f"--keep: expected PGN or Polyglot files, got {error.filename!r} ({error.strerror})"
        ) from None
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
            gap=_GAP.value,
            order=_ORDER.value,
            budget=budget,
            max_evaluations=_MAX_EVALUATIONS.value,
            position_key=position_key,
            min_probability=settings.min_probability,
            progress=lambda done, lower, upper: show(done, f"worth {lower:.4f} to {upper:.4f}"),
        )
    utility = found.lower + found.penalty * found.size
    told = (
        f"{found.work['opened']} positions were opened, {found.work['evaluations']} evaluated\n"
        f"{'Any such book':<20}has {found.upper:.4f} at most, by these scores"
    )
    if found.work["evaluations"] >= _MAX_EVALUATIONS.value:
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
        {"upper": found.upper, "order": _ORDER.value, "work": found.work},
    )


def by_games(settings: PreparationSettings, engines: chess_runs.Engines, budget: int | None) -> Prepared:
    """Lines are looked at in the order of their promise, and games say what they are worth."""
    policies = engines.policies(settings)
    budget = _MOST if budget is None else budget
    teaching = _PLAY_BUDGET.value // _TEACHING
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
            promise_games=max(2, _PLAY_BUDGET.value - teaching),
            prior_games=policies.leaf_value.utility.prior_games,
            max_evaluations=_MAX_EVALUATIONS.value,
            position_key=board_key,
            min_probability=settings.min_probability,
            seed=settings.seed,
            progress=lambda done, games, what: show(done, f"{games} games, {what}"),
        )
    preparation = found.preparation
    book, taught = certified_book(preparation), sum(each.games for each in found.rounds)
    told = (
        f"{preparation.work['opened']} positions were opened, {preparation.work['evaluations']} evaluated\n"
        f"Games               {taught} to learn what positions are worth, {found.games} more for the promise"
    )
    if not book.positions:
        told += f"\n\n{_why_nothing(settings, budget, by_rules=True)}"
    return Prepared(
        book,
        found.promise - settings.penalty * len(book),
        found.promise,
        found.unprepared,
        preparation.gain.tolist(),
        told,
        {
            "standard_error": found.standard_error,
            "games": {"taught": taught, "promise": found.games},
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


def prepared(
    settings: PreparationSettings, engines: chess_runs.Engines, folder: pathlib.Path, budget: int | None
) -> Prepared:
    """The book of these settings and of the flags, within a budget."""
    if settings.evaluation == "calibrated":
        try:
            fitted = engines.policies(settings).leaf_value.utility
        except OSError as error:
            raise ValueError(
                "--calibration: expected a file of examples/calibrate_evaluation.py, got "
                f"{settings.calibration!r} ({error.strerror})"
            ) from None
        for line in fitted.misfits(settings, engines.analyst.engine_id):
            print(line, flush=True)
    if settings.evaluation == "calibrated" and settings.menu and _PLAY_BUDGET.value and not whole_tree():
        for flag in ("order", "gap"):
            if FLAGS[flag].present:
                raise ValueError(f"--{flag}: expected --play_budget=0 beside it, since games set the order")
        return by_games(settings, engines, budget)
    if settings.menu > 1:
        return by_best_first(settings, engines, budget)
    return by_tree(settings, engines, folder, budget)


def stop_values(numbers: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """What games from where lines leave a book are expected to score, by the moves before; of `Prepared`."""
    return {tuple(stop["after"]): float(stop["value"]) for stop in numbers.get("stops", ())}


class _Taught:
    """What stopping is worth to White: as games have taught, elsewhere as the evaluation says."""

    def __init__(self, stops: dict[tuple[str, ...], float], player: int, leaf_value: Any) -> None:
        self._stops, self._player, self._leaf_value = stops, player, leaf_value

    def evaluate_batch(self, states: Sequence[ChessState]) -> list[float]:
        known = [self._stops.get(tuple(move.uci() for move in state.moves())) for state in states]
        unknown = [state for state, value in zip(states, known, strict=True) if value is None]
        others = iter(self._leaf_value.evaluate_batch(unknown))
        return [
            float(next(others)) if value is None else value if self._player == 0 else 1.0 - value
            for value in known
        ]


def exits(
    book: Book,
    settings: PreparationSettings,
    policies: PreparationPolicies,
    stops: dict[tuple[str, ...], float],
) -> list[BookExit]:
    """Where games leave a book, and what its preparation counts for them; `stops` by `stop_values`."""
    value = policies.leaf_value if settings.evaluation != "rollouts" else None
    return book_exits(
        book,
        policies.sigma[1 - settings.player],
        _Taught(stops, settings.player, value) if stops else value,
        # Fitted values are those of games by the rules of chess, which no horizon ends.
        horizon=MATCH_PLIES if settings.evaluation == "calibrated" else settings.max_plies,
        min_probability=settings.min_probability,
    )


def main(argv: Sequence[str]) -> None:
    del argv
    check_exports()
    player = 0 if _SIDE.value == "white" else 1
    settings = settings_of(player)
    folder = common.output_folder(_OUTPUT_DIR.value)
    with chess_runs.engines() as engines:
        print(
            f"{_SIDE.value.capitalize()} prepares with {engines.analyst.engine_id} "
            f"({settings.analyst_limit}) against {settings.opponent_name(engines.opponent.engine_id)}; "
            + (
                f"a position costs {settings.penalty:g}."
                if _BUDGET.value is None and not _PLAN.value
                else f"at most {_PLAN.value[-1] if _PLAN.value else _BUDGET.value} positions are learnt."
            ),
            flush=True,
        )
        needed = engines.start_record()
        found = prepared(settings, engines, folder, _BUDGET.value)
        searches, asked = engines.searches, len(needed)
        told = write_files(folder, settings, engines, found)
        report(settings, found, asked, searches, folder)
        matches = play(settings, engines, found)
        write_shown(folder, told, matches)
        if _EXPORT_STORE.value:
            engines.analyst.store.export(_EXPORT_STORE.value, keys=sorted(needed))


def write_shown(
    folder: pathlib.Path, told: Mapping[str, Any], matches: Sequence[tuple[str, MatchResult]] = ()
) -> None:
    """Writes a result's page and exports, where flags ask for them."""
    if _REPORT.value or _EXPORT.value:
        shown = [reported(WrittenPreparation.of(told), matches, plots=plots_of(folder, told))]
        if _REPORT.value:
            write_page(folder, shown)
        export(folder, shown)


def play(
    settings: PreparationSettings, engines: chess_runs.Engines, found: Prepared
) -> list[tuple[str, MatchResult]]:
    """What the book promises beside what games score: (player, match) of the book and of no book, if any."""
    if not FLAGS.match_games or not found.book.positions:
        return []
    empty = Book(found.book.start, found.book.side, ())
    try:
        with_book = chess_runs.match("With the book", found.book, settings, engines)
        without = chess_runs.match("Without it", empty, settings, engines)
    except EngineError:
        if engines.can_search:
            raise
        print("No match: games need an engine, and these ones leave what is stored.")
        return []
    replayed = "" if engines.can_search else " (from stored searches)"
    print(f"Match               {chess_runs.match_line(found.utility, with_book, without)}{replayed}")
    several = () if settings.opponent else settings.opponent_temperatures_cp
    for r in several if len(several) > 1 else ():
        against = dataclasses.replace(settings, opponent_temperature_cp=r, opponent_weights=())
        result = chess_runs.match(f"Against r = {r:g}", found.book, settings, engines, against=against)
        print(f"  r = {r:<14g}{chess_runs.match_line(None, result, None)}")
    return [("the book", with_book), ("no book", without)]


def reported(
    made: WrittenPreparation,
    matches: Sequence[tuple[str, MatchResult]] = (),
    rows: Sequence[Mapping[str, Any]] = (),
    notes: Mapping[tuple[chess.Move, ...], str] | None = None,
    plots: Mapping[str, str] | None = None,
) -> ReportBook:
    """What pages and exports have of a result.

    Args:
      made: the result.
      matches: of `play`.
      rows: of the matches in a result.json of book_match.py.
      notes: at positions, by the moves up to them.
      plots: SVG, by what they show.
    """
    settings, book, told = made.settings, made.book, made.told
    shown = [
        ReportMatch(
            name,
            len(match.book),
            len(match.games),
            match.score,
            *match.interval,
            promised=made.promised if name == "the book" else None,
        )
        for name, match in matches
    ]
    played = {
        row.exit.history: (row.games, row.score)
        for name, match in matches
        if name == "the book"
        for row in match.exit_scores(made.exits)
        if row.games
    }
    fields = ("player", "positions", "games", "score", "low", "high", "promised")
    for match_row in (row for row in rows if row["side"] == chess.COLOR_NAMES[book.side]):
        shown.append(ReportMatch(**{name: match_row[name] for name in fields}))
        if match_row["player"] == "the book":
            found = (each for each in match_row["exits"] if each["games"])
            played |= {
                tuple(map(chess.Move.from_uci, each["after"])): (each["games"], each["score"])
                for each in found
            }
    replies = _replies(settings, made.engines[1])
    learned = f"{settings.penalty:g} of a game a position"
    return ReportBook(
        book,
        gains=[float(entry["gain"]) for entry in told["memorized"]],
        utility=made.promised,
        unprepared=float(told["unprepared"]),
        standard_error=told.get("standard_error"),
        exits=made.exits,
        score_name=told.get("score", "Score"),
        source=replies,
        facts={
            "Opponent": replies,
            "The book's moves": f"{made.engines[0]}, {settings.analyst_limit}",
            "Where lines end": settings.evaluation
            + (" evaluation, corrected by games" if "games" in told else " evaluation"),
            "Memory": learned if told.get("budget") is None else f"at most {told['budget']} positions",
        },
        notes=notes or {},
        matches=shown,
        played=played,
        games=made.games,
        evaluations=made.evaluations,
        plots=plots or {},
    )


def plots_of(folder: pathlib.Path, told: Mapping[str, Any]) -> dict[str, str]:
    """The plots that a result has, as SVG."""
    memory = folder / "memory.svg"
    # One that is there may be of a result before this one.
    plotted = told.get("budget") is not None and "truncation_loss" in told and memory.is_file()
    return {"What memory is worth": memory.read_text(encoding="utf-8")} if plotted else {}


def check_exports() -> None:
    """Refuses what --export cannot be, before any work is done."""
    for name in _EXPORT.value:
        if name not in EXPORTS:
            raise ValueError(f"--export: expected some of {','.join(EXPORTS)}, got {name!r}")
    if "anki" in _EXPORT.value and importlib.util.find_spec("genanki") is None:
        raise ValueError("--export: expected genanki for anki: pip install 'precomp-games[study]'")


def export(folder: pathlib.Path, books: Sequence[ReportBook]) -> None:
    """Writes what --export says."""
    if _EXPORT.value:
        names = write_exports(folder, books, _EXPORT.value, title_of(books))
        print(f"For study: {', '.join(f'{folder}/{name}' for name in names)}")


def _replies(settings: PreparationSettings, opponent: str) -> str:
    """Where the probabilities of the opponent's replies come from."""
    if settings.opponent:
        return settings.opponent
    who = f"{opponent}, {settings.opponent_limit}"
    if settings.opponent_plays == "bestmove":
        return f"{who}, as it answers"
    return f"{who}, its {settings.top_k} best moves by exp(centipawns / r), {settings.opponent_play}"


def write_page(folder: pathlib.Path, books: Sequence[ReportBook]) -> None:
    """Writes report.html."""
    write_report(folder / "report.html", books, title_of(books))
    print(f"Page: {folder}/report.html (open it in a browser)")


def title_of(books: Sequence[ReportBook]) -> str:
    sides = " and ".join(chess.COLOR_NAMES[each.book.side].capitalize() for each in books)
    return f"{sides}: what to prepare"


def report(
    settings: PreparationSettings, found: Prepared, needed: int, searches: int, folder: pathlib.Path
) -> None:
    """Prints the result."""
    played = found.error is not None
    score, book = chess_runs.score_name(settings, played=played), found.book
    price = f"{found.to_learn} x {settings.penalty:g} for learning it"
    worth = f"Value               {found.value:.4f} = {found.utility:.4f} - {price}\n"
    size = f"{found.to_learn} positions to learn ({book.distinct_positions} distinct)"
    if found.to_learn < len(book):
        size = f"{found.to_learn} positions to learn, in a book of {book.distinct_positions}"
    bounded = _BUDGET.value is not None or _PLAN.value
    error = "" if found.error is None else f" +- {found.error:.4f}"
    print(
        f"\n{score:<20}{found.unprepared:.4f} unprepared, {found.utility:.4f}{error} with the book\n"
        + ("" if bounded else worth)
        + f"Size                {size}, {found.told}\n"
        f"Searches            {needed} needed, {searches} of them new\n"
    )
    if len(book) > 2 * book.distinct_positions and settings.price == "infosets":
        print(
            "Many of these histories lead to the same positions, and each is priced: a position then costs "
            "several times the penalty. Fewer --max_plies may be nearer to what is meant.\n"
        )
    if book.positions:
        note = chess_runs.score_note(settings, played=played)
        if note:
            print(note)
        if _LINES.value:
            print(f"First lines of the book:\n{book.first_lines(_LINES.value)}\n")
        _print_most_valuable(book)
    plotted = "truncation_loss" in found.numbers and _BUDGET.value is not None
    extra = ", memory.csv, memory.png, memory.svg" if plotted else ""
    extra = ", plan.csv, plan.png" if _PLAN.value else extra
    print(f"Written: {folder}/book.bin (Polyglot), book.pgn (variations), result.json{extra}")


def _why_nothing(settings: PreparationSettings, budget: int | None, *, by_rules: bool) -> str:
    """Why the book is empty, and what would change that; `by_rules` if games end by the rules of chess."""
    start = settings.game().new_initial_state()
    if start.is_terminal():
        return "The game is over where it starts: there is nothing to learn."
    first = 0 if start.current_player() == settings.player else 1
    own_moves = len(range(first, settings.max_plies, 2))
    within = f"within --max_plies={settings.max_plies}"
    if own_moves == 0:
        return f"It is never {_SIDE.value.capitalize()}'s move {within}: there is nothing to learn."
    if budget == 0:
        return "Nothing is worth learning at this budget; raise --budget to learn more."
    if own_moves == 1 and not by_rules:
        return f"No move is worth learning {within}, since a draw follows; raise it to learn more."
    short = (
        f", or raise --max_plies={settings.max_plies}{'' if by_rules else ', after which games are draws,'}"
    )
    more = short * (own_moves < _SHORT)
    return f"Nothing is worth learning at this penalty; lower --penalty{more} to learn more."


def _told_budget(frontier: MemoryFrontier, best: BestPrecomputation, score: str, folder: pathlib.Path) -> str:
    """Lines about a budget; plots and writes what memory is worth."""
    assert best.budget is not None
    more = best_of_frontier(frontier, best.budget + _MORE)
    rows = [
        {"positions": int(size), "utility": float(utility), "worth_of_one": float(worth)}
        for size, utility, worth in zip(
            frontier.sizes, frontier.utilities, [math.nan, *frontier.breakpoints], strict=True
        )
    ]
    common.write_csv(folder / "memory.csv", rows)
    plot(frontier, best, more, score, folder / "memory.png")
    worth, left_out = more.utility - best.utility, frontier.penalty
    return (
        f"{_MORE} more positions   {worth:+.4f} ({more.size} would give {more.utility:.4f})\n"
        f"Not looked at       --penalty={left_out:g} left out what could give {best.budget} positions up to "
        f"{best.truncation_loss:.4f} more, {more.budget} up to {more.truncation_loss:.4f}\n"
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


def _told_plan(steps: Sequence[PlanStep], score: str, folder: pathlib.Path) -> str:
    """Lines about a plan; plots and writes it."""
    rows = [
        {
            "positions": step.budget,
            "learned": step.learned,
            "utility": step.chosen.utility,
            "best_of_this_size": step.best.utility,
            "loss": step.loss,
        }
        for step in steps
    ]
    common.write_csv(folder / "plan.csv", rows)
    with common.figure(folder / "plan.png", figsize=(7.0, 4.0)) as (figure, panel):
        sizes = [0, *(step.budget for step in steps)]
        unprepared = steps[0].chosen.unprepared
        panel.plot(sizes, [unprepared, *(s.best.utility for s in steps)], "C0o-", label="the best book")
        nested = [unprepared, *(s.chosen.utility for s in steps)]
        panel.plot(sizes, nested, "C1s--", ms=4, label="the plan's, which contains the one before")
        panel.set_xlabel("positions to learn")
        panel.set_ylabel(score.lower())
        panel.grid(alpha=0.3)
        panel.legend(loc="lower right", frameon=False)
        figure.tight_layout()
    lines = [
        f"  {step.learned:<18}{step.chosen.utility:.4f}, and the best book of this size {step.loss:.4f} more"
        for step in steps
    ]
    return "\n".join(["Plan, by positions learned:", *lines])


def plot(
    frontier: MemoryFrontier,
    best: BestPrecomputation,
    more: BestPrecomputation,
    score: str,
    path: pathlib.Path,
) -> None:
    """Utility against positions, with the budget and what some more would be worth."""
    assert best.budget is not None and more.budget is not None
    with common.figure(path, figsize=(7.0, 4.0), page=True) as (figure, panel):
        right = 1.5 * more.budget
        highest = float(frontier.upper_bound(right))
        exact = frontier.sizes <= frontier.exact_size
        panel.plot(frontier.sizes[exact], frontier.utilities[exact], "C0-", lw=2.0, label="no book has more")
        beyond = np.append(frontier.sizes[frontier.sizes >= frontier.exact_size], right)
        panel.plot(
            beyond, frontier.upper_bound(beyond), "C0:", lw=1.5, label="the same, of what was looked at alone"
        )
        panel.plot([best.size], [best.utility], "C1o", label=f"at most {best.budget}: {best.utility:.4f}")
        gain = more.utility - best.utility
        label = f"at most {more.budget}: {more.utility:.4f} ({gain:+.4f})"
        panel.plot([more.size], [more.utility], "C2s", ms=4, label=label)
        pad = max(0.05 * (highest - frontier.unprepared), 1e-3)
        panel.set_xlim(0.0, right)
        panel.set_ylim(frontier.unprepared - pad, highest + pad)
        panel.set_xlabel("positions in the book")
        panel.set_ylabel(score.lower())
        panel.legend(loc="lower right")
        figure.tight_layout()


def write_files(
    folder: pathlib.Path, settings: PreparationSettings, engines: chess_runs.Engines, found: Prepared
) -> dict[str, Any]:
    """Writes book.bin, book.pgn and result.json, which belong together: all or none. Gives the last."""
    book, opponent = found.book, settings.opponent or engines.opponent.engine_id
    names = ("Book", opponent) if settings.player == 0 else (opponent, "Book")
    headers = {"Event": f"Preparation against {opponent}", "White": names[0], "Black": names[1]}
    policies = engines.policies(settings)
    left = exits(book, settings, policies, stop_values(found.numbers))
    told = result_json(settings, engines, found, left)
    if found.error is None:  # what evaluations count is no expected score
        left = [dataclasses.replace(each, promised=None) for each in left]
    with write_together(folder) as drafts:
        write_polyglot(book, drafts / "book.bin")
        write_pgn(book, drafts / "book.pgn", headers, left)
        common.write_json(drafts / "result.json", told)
    return told


def _print_most_valuable(book: Book, count: int = 5) -> None:
    print("Worth the most (what forgetting the position and all after it would cost):")
    rows = []
    for position in sorted(book.positions, key=lambda position: -position.worth)[:count]:
        board = book.start.copy()
        line = board.variation_san(position.history) or "(start)"
        for move in position.history:
            board.push(move)
        line = line if len(line) <= 90 else f"... {line[-86:].partition(' ')[2]}"
        play = board.san(position.moves[0].move)
        rows.append((position.worth, f"{100 * position.reach:.1f}%", play, line))
    common.print_table(rows, ("value", "reach", "play", "after"))
    print()


if __name__ == "__main__":
    common.run(main)
