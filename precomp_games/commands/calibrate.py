r"""Fits --evaluation=calibrated, the expected score in games by an analyst's score, and tests it on others.

  precomp-games calibrate --r_values=10,30 --output_dir=output/calibrate_evaluation

prepares with a choice of moves and few games, for each of --sides, --r_values and --fens. It draws some
positions of the search and some exits of its book, and plays on from each --playouts times, by the rules of
chess. The evaluation is fitted to the results. --test_r_values and --test_fens give positions and books that
the fit has not seen: there it is compared with the other evaluations, and with a logistic curve in
centipawns alone that is fitted to the same games.

The search for positions uses --evaluation; by default the fit in --calibration, or else the shipped one. For
another engine or other limits, begin with --evaluation=linear, and go on with the resulting file. With --pgn
the games and results are those of a file, such as a person's, and the last third of them tests the fit:
--r_values is then that of the opponents, and --player the one who prepares.

Writes calibration.json, which --calibration takes, with the comparison, and samples.csv.

  precomp-games calibrate --games=rated.pgn

fits --evaluation=people instead: people's expected scores and their time for a move, by a file of rated
games with clocks. Positions are drawn for each speed and each 300 rating points, and searched by
--analyst_nodes, by default 20,000. Both fits are compared with the last 15 % of the games by date, which
take no part. Writes people_games.json, which --calibration takes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import chess
import numpy as np
import numpy.typing as npt
import scipy  # which imports `optimize` when that is used: half a second
from absl import flags

from precomp_games._support import checks
from precomp_games._support.checks import counted
from precomp_games._support.config import bar
from precomp_games._support.deadlines import part, sample_in_time, time_is_up
from precomp_games.algorithms.preparation.confirmed import confirmed_precomputation
from precomp_games.chess.data.book import points
from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.engines.searches import Multipv, SearchResult
from precomp_games.chess.game import ChessState, board_key
from precomp_games.chess.model import calibration
from precomp_games.chess.model.engine_policies import score_utility
from precomp_games.chess.model.model import Engines, searched
from precomp_games.chess.model.played import pgn_results
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.commands import _app, _chess, _files, _flags, _rated

_NAJDORF = "rnbqkb1r/pp2pppp/3p1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R b KQkq - 2 5"
_QUEENS_GAMBIT = "rnbqkb1r/ppp2ppp/4pn2/3p4/2PP4/2N5/PP2PPPP/R1BQKBNR w KQkq - 2 4"
_RESAMPLES = 4000
_POINTS = np.array([1.0, 0.5, 0.0])  # of wins, draws and losses
_KINDS = {"exit": "exits of books", "search": "positions of searches", "game": "positions of games"}
_POSITIONS = 40
_MOST_OF_GAMES = 50  # times --positions
STOPS = True
"""Ctrl-C, pressed once, ends the work as --minutes does."""


@dataclasses.dataclass
class Flags:
    """Flags of the preparations and of the games that the fit is made from.

    Attributes:
      sides: The sides that prepare.
      r_values: Values of the opponents' r, in centipawns.
      fens: A start position, may be repeated.
      test_r_values: Values of r of the opponents to test with, in centipawns.
      test_fens: Start positions to test with.
      positions: Positions of the search to sample, for each setting. Default: 40. With --games: positions
        in all, besides those to test with. Default: 8000.
      exits: Exits of its book to sample, by how often they are reached.
      playouts: Games from each position.
      budget: Size of the books, in positions.
      menu: Number of candidate moves of the books.
      max_evaluations: Number of positions that a search evaluates.
      pgn: PGN file of games with results, in place of games that are played.
      player: Use only this player's positions in --pgn, by its name in the tags. Default: everyone's.
      skip_plies: Half-moves at the start of each game in --pgn that are left out.
      games: Rated games of people with clocks, a PGN file: fits --evaluation=people.
      speeds: Speeds of --games to fit.
      output_dir: Where files go.
    """

    sides: _flags.Listed = ("white", "black")
    r_values: _flags.Listed = ("1", "5", "10", "20", "40")
    fens: _flags.Repeated = ("", _NAJDORF)
    test_r_values: _flags.Listed = ("2.5", "15", "30")
    test_fens: _flags.Repeated = ("", _QUEENS_GAMBIT)
    positions: checks.PositiveInt | None = None
    exits: checks.PositiveInt = 20
    playouts: Annotated[int, checks.Ge(2)] = 3
    budget: checks.NonNegativeInt = 100
    menu: Multipv = 8
    max_evaluations: checks.PositiveInt = 700
    pgn: str | None = None
    player: str | None = None
    skip_plies: checks.NonNegativeInt = 8
    games: str | None = None
    speeds: _flags.Listed = SPEEDS
    output_dir: str = "output/calibrate_evaluation"


def define(own: flags.FlagValues) -> None:
    """Define the flags: those of engines, and its own."""
    _flags.define_flags(own, Flags, _flags.MinutesFlags)
    without = ("opponent_temperature_cp", "opponent_weights", "opponent", "distrust", "price", "fen")
    _flags.define_chess_flags(
        own, (*without, "menu", "menu_window_cp", "speed", "rating"), evaluation="calibrated"
    )


@dataclasses.dataclass(frozen=True)
class Position:
    """A position that was sampled.

    Attributes:
      board: the position.
      kind: its origin, "search", "exit" or "game".
      test: whether it is kept out of the fit.
      sample: its games.
    """

    board: chess.Board
    kind: str
    test: bool
    sample: calibration.CalibrationSample


class _Seen:
    """An evaluation that remembers what it was asked about."""

    def __init__(self, evaluation: Any) -> None:
        self._evaluation = evaluation
        self.states: dict[str, ChessState] = {}

    def evaluate_batch(self, states: Sequence[ChessState]) -> npt.NDArray[np.float64]:
        for state in states:
            self.states.setdefault(board_key(state), state.clone())
        return np.asarray(self._evaluation.evaluate_batch(states))


def run(given: flags.FlagValues) -> None:
    """Fit an evaluation to games, compare it with others on other games, and write it."""
    if given.games is not None:
        return _rated.run(given)
    settings = _all_settings(given)
    folder = _app.output_folder(given.output_dir)
    with _chess.open_engines(given, settings[0][1], plays=True) as engines:
        if given.pgn is None:
            positions = _from_searches(given, settings, engines)
        else:
            positions = _from_games(given, settings[0][1], engines)
        engine_id = engines.analyst.engine_id
    training = [each.sample for each in positions if not each.test]
    fit = calibration.fit_calibration(training, settings[0][1], engine_id, of_games=given.pgn is not None)
    kept_out = _kept_out(given, positions, fit, engine_id)
    games = sum(each.games for each in training)
    print(
        f"\nFitted to {len(training)} positions and {games} games. A value is worth {fit.prior_games:.1f} "
        "games."
    )
    evidence = {"positions": len(training), "games": games, "kept_out": kept_out}
    calibration.save_calibration(fit, folder / "calibration.json", evidence)
    _files.write_csv(folder / "samples.csv", [_as_row(each, fit) for each in positions])
    print(f"Written: {folder}/calibration.json, samples.csv")


def _all_settings(given: flags.FlagValues) -> list[tuple[bool, PreparationSettings]]:
    """Return (whether it is to test with, settings) of everything that is prepared."""
    unknown = sorted(set(given.sides) - {"white", "black"})
    if unknown or not given.sides:
        raise ValueError(f"--sides: expected white and black, got {','.join(given.sides)!r}")
    every = []
    for test, r_values, fens in ((False, "r_values", "fens"), (True, "test_r_values", "test_fens")):
        r_of_opponents = _flags.positive_numbers(given[r_values])
        for fen, side, r in itertools.product(getattr(given, fens), given.sides, r_of_opponents):
            what = {"opponent_temperature_cp": r, "menu": given.menu, "fen": fen}
            every.append((test, _flags.settings_of(given, int(side == "black"), evaluated=True, **what)))
    return every


def _sampled(
    given: flags.FlagValues, number: int, settings: PreparationSettings, engines: Engines, *, test: bool
) -> list[Position]:
    """Sample positions of one preparation, and play games from them."""
    policies, game, player = engines.policies(settings), settings.played_game(), settings.player
    seen, seed, r = _Seen(policies.leaf_value), [given.seed, number], settings.opponent_temperatures_cp[0]
    best = confirmed_precomputation(
        *searched(dataclasses.replace(policies, leaf_value=seen), game, settings),
        budget=given.budget,
        games=40,
        promise_games=2,
        max_evaluations=given.max_evaluations,
        position_key=board_key,
        min_probability=settings.min_probability,
        seed=seed,
    )
    rng = np.random.default_rng(seed)
    own = [state for state in seen.states.values() if state.current_player() == player]
    chosen = [("search", own[k]) for k in rng.permutation(len(own))[: given.positions or _POSITIONS]]
    if best.stops:
        reach = np.array([stop.reach for stop in best.stops])
        count = min(given.exits, len(reach))
        for k in rng.choice(len(reach), count, replace=False, p=reach / reach.sum()):
            state = game.new_initial_state()
            for action in best.stops[k].history:
                state.apply_action(action)
            chosen.append(("exit", state))
    samples = calibration.played_samples(
        [state for _, state in chosen],
        policies.sigma,
        policies.leaf_value,
        r,
        given.playouts,
        seed=seed,
        setting=", ".join(filter(None, (f"{chess.COLOR_NAMES[settings.side]}, r = {r:g}", settings.fen))),
        min_probability=settings.min_probability,
    )
    return [
        Position(state.board, kind, test, each)
        for (kind, state), each in zip(chosen, samples, strict=False)  # as far as there was time for games
    ]


def _from_games(given: flags.FlagValues, settings: PreparationSettings, engines: Engines) -> list[Position]:
    """Sample positions of the games in a file, each with all games that it comes up in."""
    report = GameReport()
    results = pgn_results(given.pgn, given.player, skip_plies=given.skip_plies, report=report)
    print(f"{'Games':<20}{report}")
    counts: dict[tuple[bool, str], list[int]] = {}
    # The last third of the file is kept out: both players' views of a game are next to each other.
    for number, (epds, score) in enumerate(results):
        for epd in dict.fromkeys(epds):
            counts.setdefault((3 * number >= 2 * len(results), epd), [0, 0, 0])[round(2.0 - 2.0 * score)] += 1
    keys = list(counts)
    most = (given.positions or _POSITIONS) * _MOST_OF_GAMES
    if len(keys) > most:
        chosen = np.random.default_rng(given.seed).choice(len(keys), most, replace=False)
        keys = [keys[k] for k in sorted(chosen.tolist())]

    def searched(drawn: list[tuple[bool, str]]) -> tuple[list[tuple[bool, str]], list[SearchResult]]:
        epds = [epd for _, epd in drawn]
        return drawn, engines.analyst.search(epds, settings.analyst_limit, settings.multipv)

    looked_at, (drawn, searches) = sample_in_time(keys, searched, seed=given.seed)
    if looked_at < len(keys):
        print(f"{looked_at} of {counted(len(keys), 'position')}, drawn with --seed, as --minutes allow.")
    positions = []
    for (test, epd), result in zip(drawn, searches, strict=True):
        board = chess.Board(f"{epd} 0 1")
        r, (wins, draws, losses) = settings.opponent_temperatures_cp[0], counts[test, epd]
        sample = calibration.CalibrationSample(
            result.lines[0], calibration.material(board), r, wins, draws, losses, given.pgn
        )
        positions.append(Position(board, "game", test, sample))
    return positions


def _from_searches(
    given: flags.FlagValues, settings: list[tuple[bool, PreparationSettings]], engines: Engines
) -> list[Position]:
    """Sample positions of all preparations."""
    positions: list[Position] = []
    # Settings to test with and the others take turns, in a random order.
    drawn = np.random.default_rng(given.seed).permutation(len(settings)).tolist()
    ranks = {test: [k for k in drawn if settings[k][0] is test] for test in (False, True)}
    order = sorted(drawn, key=lambda k: (ranks[settings[k][0]].index(k) / len(ranks[settings[k][0]]), k))
    looked_at: set[bool] = set()
    with bar("Playing", "preparations", len(settings)) as show:
        for left, number in zip(range(len(settings), 0, -1), order, strict=True):
            show(len(settings) - left)
            test, each = settings[number]
            if time_is_up() and test in looked_at:
                continue
            looked_at.add(test)
            with part(1.0 / left):
                positions += _sampled(given, number, each, engines, test=test)
    return positions


def _logistic_fit(samples: Sequence[calibration.CalibrationSample]) -> float:
    """Return the scale, in centipawns, of the logistic curve that fits best."""

    def loss(scale: float) -> float:
        p = np.array([_logistic(scale, each) for each in samples]).clip(1e-9, 1.0 - 1e-9)
        score, games = (np.array([getattr(each, name) for each in samples]) for name in ("score", "games"))
        return -float(score @ np.log(p) + (games - score) @ np.log1p(-p))

    return float(scipy.optimize.minimize_scalar(loss, bounds=(20.0, 5000.0), method="bounded").x)


def _logistic(scale: float, sample: calibration.CalibrationSample) -> float:
    """Return the curve at a sample's score; a mate is one of 50 pawns."""
    line = sample.line
    cp = math.copysign(5000.0, line.mate) if line.mate is not None else float(line.cp or 0)
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, cp / scale))))


def _kept_out(
    given: flags.FlagValues, positions: Sequence[Position], fit: calibration.CalibratedUtility, engine_id: str
) -> dict[str, list[dict[str, Any]]]:
    """Print and return how well each evaluation predicts games kept out of the fit, by kind of position."""

    def by(name: str) -> Callable[[Position], float]:
        utility = score_utility(name, given.scale_cp, engine_id)
        return lambda position: float(utility.mover_utility(position.sample.line, position.board))

    scale = _logistic_fit([each.sample for each in positions if not each.test])
    evaluations: dict[str, Callable[[Position], float]] = {
        "calibrated": lambda position: fit.mover_utility(position.sample.line, position.board),
        "linear": by("linear"),
        "threshold": by("threshold"),
        "logistic": lambda position: _logistic(scale, position.sample),
    }
    try:
        evaluations["wdl"] = by("wdl")
    except ValueError:
        print(f"python-chess has no win-draw-loss model of {engine_id}: left out.")
    rows_of_kinds = {}
    for kind, name in _KINDS.items():
        if kept := [each for each in positions if each.test and each.kind == kind]:
            rows = rows_of_kinds[kind] = _compared(kept, evaluations, given.seed)
            print(f"\nKept out: {len(kept)} {name}, {sum(each.sample.games for each in kept)} games\n")
            table = [
                (
                    *(row["brier"], points(row["expected"]), points(row["scored"])),
                    *(f"{row['more']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})", row["evaluation"]),
                )
                for row in rows
            ]
            header = ("Brier", "expected in 100", "scored", "more than calibrated", "evaluation")
            _files.print_table(table, header)
    return rows_of_kinds


def _compared(
    positions: Sequence[Position], evaluations: Mapping[str, Callable[[Position], float]], seed: int
) -> list[dict[str, Any]]:
    """Return Brier scores, and their excess over the calibrated one's: 95 %, by resampling positions."""
    results = np.array([(each.sample.wins, each.sample.draws, each.sample.losses) for each in positions])
    games = results.sum(axis=1)
    scored = float(np.mean(results @ _POINTS / games))
    drawn = np.random.default_rng(seed).integers(len(positions), size=(_RESAMPLES, len(positions)))
    calibrated, rows = None, []
    for name, expects in evaluations.items():
        expected = np.array([expects(each) for each in positions])
        brier = (results * (_POINTS - expected[:, None]) ** 2).sum(axis=1) / games
        calibrated = brier if calibrated is None else calibrated
        more = brier - calibrated
        low, high = np.quantile(more[drawn].mean(axis=1), (0.025, 0.975)).tolist()
        row = {"evaluation": name, "brier": float(brier.mean()), "expected": float(expected.mean())}
        rows.append(row | {"scored": scored, "more": float(more.mean()), "low": low, "high": high})
    return rows


def _as_row(position: Position, fit: calibration.CalibratedUtility) -> dict[str, Any]:
    """Return a sample for other programs."""
    sample, board, line = position.sample, position.board, position.sample.line
    return {
        **{"setting": sample.setting, "kind": position.kind, "test": int(position.test)},
        **{"epd": board.epd(), "ply": board.ply(), "material": sample.material},
        **{"cp": line.cp, "mate": line.mate, "r": sample.opponent_temperature_cp},  # None is written as ""
        **{"wins": sample.wins, "draws": sample.draws, "losses": sample.losses},
        "expected": f"{fit.expected(sample.line, sample.material):.4f}",
    }
