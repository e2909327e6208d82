r"""Measures how well models of a person predict later games: bits a move and first guesses, by ply.

  python examples/opponent_model.py --games=karpov.pgn --player="Karpov Anatoli" --population=others.pgn \
      --since=1980 --until=1996

Each year's moves are predicted from the years before. The models: the person's counts alone; with games that
count less as they age; with a population's games (--population, without the person) as the prior; and, with
--behind=engine, with an engine's softmax behind the population. Half-life and alpha, the games that a prior
is worth, are those that predict the years before best. Without flags, on small samples that come with it,
without an engine. Writes result.json, by_ply.csv, by_ply.png and calibration.png.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
import numpy as np
import people
import sweeps
from absl import flags

from precomp_games import chess
from precomp_games.chess.data import move_counts
from precomp_games.chess.model.count_fit import HALF_LIVES, CountFit, RollingCounts
from precomp_games.chess.model.estimation import fit_opponent, opponent_choices
from precomp_games.chess.model.opponents import prior_of_moves, rolling_fit

_EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0 + 1e-9)
_LEAST = 2.0**-40  # a move that a model rules out surprises it by no more than 40 bits

FLAGS = flags.FLAGS
_SINCE = flags.DEFINE_integer("since", None, "First year that is predicted. Default: the middle one.")
_UNTIL = flags.DEFINE_integer("until", None, "Last year that is predicted. Default: the last one.")
_PLIES = flags.DEFINE_integer("plies", 16, "Half-moves of each game that are predicted.", lower_bound=1)
_BEHIND = flags.DEFINE_enum("behind", "uniform", ["uniform", "engine"], "What is behind the population.")
_ENGINE_MOVES = flags.DEFINE_integer("engine_moves", 8, "Moves that the engine looks at.", 2, 500)
_FITTED = flags.DEFINE_integer("fitted", 1000, "Positions by which the engine's r is fitted.", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/opponent_model", "Where files go.")
common.define_chess_flags()
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(people)


@dataclasses.dataclass(frozen=True)
class Model:
    """A model: whether age counts, and what is behind the counts; None: any legal move."""

    name: str
    half_lives: tuple[float, ...]
    prior: Any
    counts: bool = True


@dataclasses.dataclass
class Score:
    """A model's predictions: for each move its bits and whether it was the first guess; for all, odds."""

    bits: list[float] = dataclasses.field(default_factory=list)
    first: list[bool] = dataclasses.field(default_factory=list)
    expected: list[float] = dataclasses.field(default_factory=list)
    played: list[bool] = dataclasses.field(default_factory=list)
    fits: list[CountFit] = dataclasses.field(default_factory=list)

    @property
    def mean_bits(self) -> float:
        return float(np.mean(self.bits))

    @property
    def share_first(self) -> float:
        return float(np.mean(self.first))

    def add(self, row: Mapping[int, float], action: int) -> None:
        odds = row.get(action, 0.0)
        self.bits.append(-math.log2(max(odds, _LEAST)))
        # Of moves that are equally likely, the one with the least number is the guess.
        self.first.append(bool(row) and min(row, key=lambda move: (-row[move], move)) == action)
        self.expected.extend(row.values())
        self.played.extend(move == action for move in row)


def test_years(found: people.KnownPerson) -> list[int]:
    """The years that are predicted: those in which there are games."""
    since = _SINCE.value if _SINCE.value is not None else int(np.median(found.years)) + 1
    until = _UNTIL.value if _UNTIL.value is not None else int(found.years.max())
    return people.years_of(found, since, until)


def engine_behind(engines: chess_runs.Engines, found: people.KnownPerson, since: int) -> tuple[Any, str]:
    """Return the engine's softmax with lapses, fitted to the person's moves before the first year."""
    table = found.table.select(found.table.years < since)
    states, own = table.own_states(), table.own
    played = zip(table.keys[own].tolist(), table.actions[own].tolist(), strict=True)
    # Each position counts once: where a person has many games, counts predict it well.
    moves = {(states[key].board.epd(), chess.move_of(action).uci()): 1 for key, action in played}
    epds = list(dict.fromkeys(epd for epd, _ in moves))
    rng = np.random.default_rng(FLAGS.seed)
    kept = {epds[k] for k in rng.permutation(len(epds))[: _FITTED.value]}
    limit, top_k = chess.SearchLimit(nodes=FLAGS.opponent_nodes), _ENGINE_MOVES.value
    once = {move: 1 for move in moves if move[0] in kept}
    fit = fit_opponent(opponent_choices(engines.analyst, limit, top_k, once))
    spec = (
        f"noisy(policy=uci(nodes={limit.nodes},r={fit.temperature_cp!r},top_k={top_k}),epsilon={fit.lapse!r})"
    )
    policy = chess.opponent_policy(chess.ChessGame(), spec, engines.analyst)
    how = f"r = {fit.temperature_cp:.0f} cp, lapses {fit.lapse:.2f}"
    return policy, f"{engines.analyst.engine_id} ({limit}, {top_k} moves), {how}"


def models(population: move_counts.GameSelection | None, since: int, behind: Any) -> list[Model]:
    """Return the models, from plain to best; a population's games count up to the first year."""
    ageless = (math.inf,)
    found = [Model("counts alone", ageless, None), Model("with age", HALF_LIVES, None)]
    if population is not None:
        read = chess.GameReport()
        table = population.table(read)
        earlier = table.select(table.years < since)
        if not earlier.num_games:
            raise ValueError(f"--population: expected games before {since}, got none in {population.path!r}")
        # Fitted without an engine, which would have to search all positions of all these games.
        fit = rolling_fit(earlier)
        counts = move_counts.MoveCounts.of_tables([earlier], move_counts.GameWeights(half_life=fit.half_life))
        fitted = f"H = {fit.half_life:.3g} years, alpha = {fit.alpha:.2g}"
        print(f"Population          {read}\n{'':<20}{earlier.num_games} before {since}, {fitted}", flush=True)
        others = move_counts.CountsPolicy(chess.ChessGame(), counts, fit.alpha)
        found.append(Model("population alone", ageless, others, counts=False))
        found.append(Model("with population", HALF_LIVES, others))
        if behind is not None:
            backed = move_counts.CountsPolicy(chess.ChessGame(), counts, fit.alpha, behind)
            found.append(Model("with engine", HALF_LIVES, backed))
    elif behind is not None:
        found.append(Model("with engine", HALF_LIVES, behind))
    return found


def score(
    model: Model, table: move_counts.GameTable, years: list[int], states: dict[int, chess.ChessState]
) -> Score:
    """Predict each year from the years before."""
    result, game = Score(), chess.ChessGame()
    known = table.select(table.years < years[-1] + 1)
    if model.counts:
        rolling = RollingCounts(known)
        prior = prior_of_moves(model.prior, known, states)[rolling.moves]
        result.fits = rolling.fits(prior, [float(year) for year in years], model.half_lives)
    for k, year in enumerate(years):
        policy = model.prior
        if model.counts:
            weights = move_counts.GameWeights(half_life=result.fits[k].half_life, as_of=float(year))
            counts = move_counts.MoveCounts.of_tables([table.select(table.years < year)], weights)
            policy = move_counts.CountsPolicy(game, counts, result.fits[k].alpha, model.prior)
        now = table.select(np.floor(table.years) == year)
        played = now.actions[now.own].tolist()
        for row, action in zip(move_counts.predicted_rows(policy, now, states), played, strict=True):
            result.add(row, action)
    return result


def report(scores: dict[str, Score], plies: np.ndarray, folder: pathlib.Path) -> list[dict[str, Any]]:
    """Print the tables and return the rows by ply."""
    overall = []
    for name, each in scores.items():
        half_lives, alphas = ([getattr(fit, what) for fit in each.fits] for what in ("half_life", "alpha"))
        ends = f"{min(half_lives):.3g} to {max(half_lives):.3g}" if half_lives else "-"
        games = f"{min(alphas):.2g} to {max(alphas):.2g}" if alphas else "-"
        overall.append((name, each.mean_bits, f"{100 * each.share_first:.1f}%", ends, games))
    common.print_table(overall, ("model", "bits a move", "first guess", "H (years)", "alpha"))
    rows = []
    for ply in np.unique(plies):
        here = plies == ply
        row: dict[str, Any] = {"ply": int(ply) + 1, "moves": int(here.sum())}
        for what in ("bits", "first"):
            for name, each in scores.items():
                row[f"{name}, {what}"] = round(float(np.array(getattr(each, what))[here].mean()), 4)
        rows.append(row)
    print("\nBits a move by ply (and the share that the last model guesses first):")
    columns = {"ply": "ply", "moves": "moves"} | {name: f"{name}, bits:.2f" for name in scores}
    sweeps.print_rows(rows, columns | {"first": f"{list(scores)[-1]}, first:.2f"})
    common.write_csv(folder / "by_ply.csv", rows)
    return rows


def plot(scores: dict[str, Score], path: pathlib.Path) -> None:
    """Plot how often moves of each predicted probability were played."""
    with common.figure(path, figsize=(5.6, 5.2)) as (figure, panel):
        panel.plot([0.003, 1.0], [0.003, 1.0], color="0.6", lw=1.0, label="as predicted")
        for k, (name, each) in enumerate(scores.items()):
            expected, played = np.array(each.expected), np.array(each.played)
            cell = np.digitize(expected, _EDGES)
            cells = [cell == c for c in np.unique(cell)]
            cells = [here for here in cells if here.sum() >= 30 and played[here].any()]
            if cells:  # not of a handful of moves
                x, y = (np.array([of[here].mean() for here in cells]) for of in (expected, played))
                error = 2.0 * np.sqrt(y * (1.0 - y) / [here.sum() for here in cells])
                style = common.curve_style(k)
                panel.errorbar(x, y, error, fmt=style, ms=3.5, lw=1.0, label=name, capsize=2)
        panel.set(xscale="log", yscale="log", xlabel="predicted probability of a move")
        panel.set_ylabel("share of times it was played (two standard errors)")
        panel.legend()
        figure.tight_layout()


def plot_by_ply(rows: Sequence[dict[str, Any]], names: Iterable[str], path: pathlib.Path) -> None:
    """Plot bits a move against the ply, a curve a model."""
    with common.figure(path, figsize=(7.0, 4.2)) as (figure, panel):
        for k, name in enumerate(names):
            sweeps.curve(panel, rows, "ply", f"{name}, bits", common.curve_style(k), name, ms=4)
        panel.set(xlabel="half-move of the game", ylabel="bits a move, the fewer the better")
        panel.set_ylim(bottom=0.0)
        panel.legend()
        figure.tight_layout()


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.output_folder(_OUTPUT_DIR.value)
    found = people.person(_PLIES.value)
    table, player, population = found.table, found.name, found.population
    years = test_years(found)
    print(f"{player:<20}{found.report}")
    print(f"Predicted           {years[0]} to {years[-1]}, {_PLIES.value} plies a game")
    now = table.select(np.isin(np.floor(table.years), years))
    behind, description = None, None
    with contextlib.ExitStack() as stack:
        if _BEHIND.value == "engine":
            engines = stack.enter_context(chess_runs.engines())
            behind, description = engine_behind(engines, found, years[0])
            print(f"Engine              {description}", flush=True)
        scores = all_scores(models(population, years[0], behind), table, years)
    print(f"Moves               {int(now.own.sum())} in {now.num_games} games\n")
    # Years are predicted one after the other; within a year, games stand in the file's order.
    order = np.argsort(np.floor(now.years)[now.game[now.own]], kind="stable")
    rows = report(scores, now.ply[now.own][order], folder)
    plot(scores, folder / "calibration.png")
    plot_by_ply(rows, scores, folder / "by_ply.png")
    known = {
        name: {
            "bits": each.mean_bits,
            "first": each.share_first,
            "moves": len(each.bits),
            "fits": [as_json(year, fit) for year, fit in zip(years, each.fits, strict=False)],
        }
        for name, each in scores.items()
    }
    result = {"player": player, "read": str(found.report), "years": years, "engine": description}
    common.write_json(folder / "result.json", result | {"models": known, "by_ply": rows})
    print(f"\nWritten: {folder}/result.json, by_ply.csv, by_ply.png, calibration.png")


def all_scores(compared: list[Model], table: move_counts.GameTable, years: list[int]) -> dict[str, Score]:
    states = table.select(table.years < years[-1] + 1).own_states()
    bar = common.progress_bar(compared, desc="Predicting")
    return {model.name: score(model, table, years, states) for model in bar}


def as_json(year: int, fit: CountFit) -> dict[str, Any]:
    """Return a fit for programs; no half-life is None."""
    half_life = fit.half_life if math.isfinite(fit.half_life) else None
    return dataclasses.asdict(fit) | {"year": year, "half_life": half_life}


if __name__ == "__main__":
    common.run(main)
