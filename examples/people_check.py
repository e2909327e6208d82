r"""Checks models of people by games that took no part in them: replies, values, clocks and choices.

  python examples/people_check.py --games=club.pgn --player="A Friend" --maia=networks

The games have ratings and clocks. The last ones by date (--last) are predicted; what is fitted is fitted to
the others, and values and times are those that come with the library, or --fit. Moves and positions are drawn
with --seed. Writes people_check.json and a figure of each part.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
import numpy as np
from absl import flags

from precomp_games import chess
from precomp_games.chess.data.game_records import SPEEDS, WHITE_SCORES, GameRecord, read_games
from precomp_games.chess.model import off_policy, people_checks
from precomp_games.chess.model.clock_times import expected_seconds
from precomp_games.chess.model.people import KnownPerson, read_person, rolled
from precomp_games.chess.model.people_values import PeopleFit, load_people, pawns
from precomp_games.chess.model.rated_games import RatedGames, TimedMove, rated_games, spread
from precomp_games.policies.rows import as_batch_policy

_ANALYST = chess.SearchLimit(nodes=20_000)
_SPREAD, _NEAR = 200, 100  # of people's ratings; to what they are rounded
_PLIES, _OWN_PLIES, _BOOK_PLIES = 60, 30, 24  # half-moves that are looked at
_BAND = 6  # half-moves of a class of known positions
_LEAST = 20  # games of a move that is compared, of a position that is known, and of what is in a table
_FITTED = 4000  # moves that half-life and alpha are fitted to
_BATCH = 64
_PARTS = ("replies", "values", "clocks", "off_policy", "speed")

FLAGS = flags.FLAGS
_GAMES = flags.DEFINE_string("games", "", "Rated games of a player, with clocks, in PGN.")
_PLAYER = flags.DEFINE_string("player", "", "Who, as the file has the name.")
_LAST = flags.DEFINE_float("last", 0.15, "Share of the games that are predicted, the last ones.", 0.01, 0.9)
_MOVES = flags.DEFINE_integer("moves", 12000, "Moves of strangers that are drawn, and of the player.", 100)
_ENGINE_MOVES = flags.DEFINE_integer("engine_moves", 1000, "Of these, how many the engine predicts.", 20)
_ERRS = flags.DEFINE_string(
    "errs", "noisy(policy=uci(nodes=20000,r=40,top_k=12),epsilon=0.2)", "The engine that errs."
)
_POSITIONS = flags.DEFINE_integer("positions", 8000, "Earlier positions that are evaluated.", 100)
_LEAST_GAMES = flags.DEFINE_integer("least_games", 80, "Games of a position whose moves are compared.", 2)
_FIT = flags.DEFINE_string("fit", None, "Values, as calibrate --games writes them. Default: those shipped.")
_ONLY = flags.DEFINE_list("only", list(_PARTS), f"What is checked: some of {', '.join(_PARTS)}.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/people_check", "Where files go.")
common.define_chess_flags()
flags.adopt_module_key_flags(common)

Rows = list[Mapping[int, float]]


# -- games -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Asked:
    """A move that is predicted, of which game, at which speed, and by whom."""

    state: chess.ChessState
    action: int
    game: int
    speed: str
    rating: float


@dataclasses.dataclass(frozen=True)
class Games:
    """Games with ratings and a result; the last ones begin at a decimal year, `cut`."""

    records: list[GameRecord]
    cut: float

    def part(self, later: bool) -> Iterator[tuple[int, GameRecord]]:
        return ((k, r) for k, r in enumerate(self.records) if ((r.year or 0.0) >= self.cut) is later)

    def drawn(self, own: bool, plies: int, count: int) -> list[Asked]:
        """Draw moves of the last games, each as likely as any other."""
        every = [(k, ply) for k, record in self.part(later=True) for ply in plies_of(record, plies, own)]
        chosen = np.random.default_rng([FLAGS.seed, own]).permutation(len(every))[:count].tolist()
        wanted = {every[which] for which in chosen}
        asked = []
        for k in sorted({k for k, _ in wanted}):
            record = self.records[k]
            for ply, state in enumerate(states_of(record)):
                if (k, ply) in wanted:
                    rating = ratings_of(record)[ply % 2]
                    asked.append(Asked(state, record.actions[ply], k, record.speed, rating))
        return asked


def plies_of(record: GameRecord, plies: int, own: bool = True) -> list[int]:
    return [ply for ply in range(min(plies, len(record.keys))) if (record.mover(ply) in record.own) is own]


def ratings_of(record: GameRecord) -> tuple[int, int]:
    white, black = record.ratings
    assert white is not None and black is not None
    return white, black


def states_of(record: GameRecord, plies: int = _PLIES) -> Iterator[chess.ChessState]:
    """Yield the positions before the moves of a game."""
    state = chess.ChessGame({"max_plies": 1000}).new_initial_state()
    for action in record.actions[:plies]:
        if state.is_terminal():
            return
        yield state.clone()
        state.apply_action(action)


def read() -> Games:
    read_all = read_games(_GAMES.value, _PLAYER.value, clocks=True, max_plies=_PLIES)
    records = [
        each
        for each in common.progress_bar(read_all, desc="Reading", unit=" games")
        if None not in each.ratings and each.speed and each.result in WHITE_SCORES and len(each.own) == 1
    ]
    if len(records) < 100:
        raise ValueError(f"--games: expected 100 rated games of the player or more, got {len(records)}")
    years = sorted(each.year or 0.0 for each in records)
    return Games(records, years[round((1.0 - _LAST.value) * len(years))])


# -- replies -----------------------------------------------------------------------------------------------


def predicted(asked: Sequence[Asked], policy: Callable[[float], Any], name: str) -> Rows:
    """Return the policies' probabilities for each move, asking the policy of the nearest rating."""
    rows: Rows = [{}] * len(asked)
    near = np.round(np.array([each.rating for each in asked]) / _NEAR) * _NEAR
    with common.progress_bar(total=len(asked), desc=name) as bar:
        for rating in np.unique(near).tolist():
            ask, which = as_batch_policy(policy(rating)), np.flatnonzero(near == rating).tolist()
            for first in range(0, len(which), _BATCH):
                part = which[first : first + _BATCH]
                for k, row in zip(part, ask([asked[k].state for k in part]), strict=True):
                    rows[k] = row
                bar.update(len(part))
    return rows


def counted(person: KnownPerson, cut: float, prior: Any, most: int) -> Any:
    """Return a model of the player's earlier games with a prior, fitted (half-life, alpha) to some moves."""
    table = person.table.select(person.table.years < cut)
    some = max(1, round(most * table.num_games / int(table.own.sum())))
    looked = np.random.default_rng(FLAGS.seed).permutation(table.num_games)[:some].tolist()
    rolling, odds, among = rolled(table, looked, prior)
    (fit,) = rolling.fits(odds, [np.inf], among=among)
    print(f"Half-life {fit.half_life:.3g} years, alpha {fit.alpha:.3g}: by {fit.moves} earlier moves")
    return person.policy(prior, cut, fit)


def check_replies(games: Games, engine: Any, folder: pathlib.Path) -> dict[str, Any]:
    game, most = chess.ChessGame({"max_plies": 1000}), _ENGINE_MOVES.value

    def human(rating: float, spread: int = 0) -> Any:
        return chess.opponent_policy(game, f"human(rating={rating:g},spread={spread})")

    errs, uniform = chess.opponent_policy(game, _ERRS.value, engine), common.policy(game, "uniform")
    models: dict[str, Callable[[float], Any]] = {
        "any legal move": lambda _: uniform,
        "engine that errs": lambda _: errs,
        "human(rating)": human,
        f"human(rating, spread={_SPREAD})": lambda rating: human(rating, _SPREAD),
    }
    person = read_person(_GAMES.value, _PLAYER.value, None, _OWN_PLIES)
    known = dataclasses.replace(person, table=person.table.select(person.table.years < games.cut))
    behind = human(round(known.rating or 0.0), _SPREAD)
    counts = counted(person, games.cut, errs, most), counted(person, games.cut, behind, _FITTED)
    own: dict[str, Callable[[float], Any]] = {
        "games before the engine": lambda _: counts[0],
        "games before human": lambda _: counts[1],
    }
    table, classes = list[dict[str, Any]](), list[dict[str, Any]]()
    for whose, plies, compared in (("strangers", _PLIES, models), ("player", _OWN_PLIES, models | own)):
        asked = games.drawn(whose == "player", plies, _MOVES.value)
        few = set(np.random.default_rng(FLAGS.seed).permutation(len(asked))[:most].tolist())
        for name, policy in compared.items():
            part = [each for k, each in enumerate(asked) if k in few or "engine" not in name]
            rows = predicted(part, policy, f"{whose}, {name}")
            table += replies_by_speed(part, rows, {"whose": whose, "by": name})
        both = [(asked[k], rows[k]) for k in sorted(few)]
        labels = {"whose": whose, "by": f"{name}, the engine's moves"}
        table += replies_by_speed([each for each, _ in both], [row for _, row in both], labels)
        played, numbers = [each.action for each in asked], np.array([each.game for each in asked])
        found = people_checks.reply_classes(rows, played, numbers)
        classes += [{"whose": whose} | dataclasses.asdict(each) for each in found]
    show("Replies: bits a move, and how often the likeliest one was played", table)
    show("Legal moves by predicted probability, and how often they were played", classes)
    plot(folder / "replies.png", classes, "whose", "played", "predicted probability of a move", "played")
    return {"replies": table, "reply_classes": classes}


def replies_by_speed(asked: Sequence[Asked], rows: Rows, labels: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for speed in ("all", *SPEEDS):
        both = [(each, row) for each, row in zip(asked, rows, strict=True) if speed in ("all", each.speed)]
        played, numbers = [each.action for each, _ in both], np.array([each.game for each, _ in both])
        if len(set(numbers.tolist())) >= _LEAST:
            check = people_checks.check_replies([row for _, row in both], played, numbers)
            found.append({**labels, "speed": speed, **dataclasses.asdict(check)})
    return found


# -- values and clocks -------------------------------------------------------------------------------------


def check_values(people: PeopleFit, drawn: RatedGames, engine: Any, folder: pathlib.Path) -> dict[str, Any]:
    earlier, later = drawn.parted(_LAST.value)
    first = spread(earlier.positions, _POSITIONS.value, FLAGS.seed)
    last = spread(later.positions, round(0.3 * _POSITIONS.value), FLAGS.seed, bands=False)
    lines = [
        [each.lines[0] for each in engine.search([each.epd for each in some], _ANALYST, 1)]
        for some in (first, last)
    ]
    checks = as_rows(people_checks.check_values(people, (first, lines[0]), (last, lines[1])))
    classes = as_rows(people_checks.value_classes(people, last, lines[1]))
    show("Values: bits a position, and the slope of real scores on predicted ones", checks)
    show("Scores, in ten classes by what was expected", classes)
    plot(folder / "values.png", classes, "speed", "scored", "expected score", "score")
    return {"values": checks, "value_classes": classes}


def check_clocks(
    people: PeopleFit, drawn: RatedGames, games: Games, folder: pathlib.Path
) -> dict[str, list[dict[str, Any]]]:
    """Check the seconds of later moves, and of the player's by how many earlier games had the position."""
    seconds = as_rows(people_checks.check_seconds(people, drawn.parted(_LAST.value)[1].moves))
    show("Seconds of moves, in ten classes by what was expected", seconds)
    plot(folder / "seconds.png", seconds, "speed", "spent", "expected seconds of a move", "seconds")
    met, found = collections.Counter[int](), dict[tuple[int, int, int], list[TimedMove]]()
    for _, record in games.part(later=False):
        met.update({record.keys[ply] for ply in plies_of(record, _BOOK_PLIES)})
    for k, record in games.part(later=True):
        states, clocks = list(states_of(record, _BOOK_PLIES)), record.clocks
        for ply in plies_of(record, len(states)):
            before, after = clocks[max(0, ply - 2)], clocks[ply]
            if ply < 2 or before is None or after is None or record.control is None:
                continue
            if (spent := before - after + record.control[1]) >= 0.0:
                times = met[record.keys[ply]]
                of = (record.speed, record.control, sum(ratings_of(record)) / 2.0, ply)
                move = TimedMove(k, record.year or 0.0, *of, len(states[ply].legal_actions()), spent)
                often = int(times > 0) + int(times >= _LEAST)
                kind = SPEEDS.index(record.speed), ply // _BAND, often
                found.setdefault(kind, []).append(move)
    known = []
    for (speed, band, often), moves in sorted(found.items()):
        numbers, real = (np.array([getattr(x, name) for x in moves]) for name in ("game", "seconds"))
        if len(np.unique(numbers)) >= _LEAST:
            expected = float(expected_seconds(people.times_at(SPEEDS[speed], 1500.0), moves).mean())
            plies = f"{max(2, _BAND * band)} to {_BAND * (band + 1) - 1}"
            row = {
                "speed": SPEEDS[speed],
                "half-moves": plies,
                "met": ("never", f"under {_LEAST}", f"{_LEAST} or more")[often],
            }
            mean, error = people_checks.mean_of_games(real, numbers)
            known.append({**row, "moves": len(moves), "expected": expected, "spent": mean, "error": error})
    show("Seconds of the player's moves, by how often earlier games had met the position", known)
    return {"seconds": seconds, "known": known}


# -- choices -----------------------------------------------------------------------------------------------


def check_choices(games: Games, people: PeopleFit, engine: Any, folder: pathlib.Path) -> list[dict[str, Any]]:
    """Compare games' scores beyond ratings, by the move chosen, with what evaluations expect of it."""
    passed = dict[int, dict[int, int]]()  # by position and game: the half-move
    for k, record in enumerate(games.records):
        for ply in plies_of(record, _BOOK_PLIES):
            passed.setdefault(record.keys[ply], {}).setdefault(k, ply)
    passed = {key: of for key, of in passed.items() if len(of) >= _LEAST_GAMES.value}
    before, after = list[chess.ChessState](), dict[tuple[int, int], chess.ChessState]()
    for position, of in enumerate(passed.values()):
        k, ply = next(iter(of.items()))
        before.append(list(states_of(games.records[k], ply + 1))[-1])
        for action in {games.records[k].actions[ply] for k, ply in of.items()}:
            after[position, action] = before[-1].child(action)
    asked = [state.epd for state in (*before, *after.values()) if not state.is_terminal()]
    found = dict(zip(asked, engine.search(asked, _ANALYST, 1), strict=True))

    def worth(state: chess.ChessState, side: int) -> float:
        """Return a state's evaluation in pawns, from a side's viewpoint."""
        if state.is_terminal():
            return 20.0 * (state.returns()[side] - 0.5)
        return pawns(found[state.epd].lines[0]) * (1.0 if state.current_player() == side else -1.0)

    rows, numbers = list[tuple[float, ...]](), {name: k for k, name in enumerate(after)}
    for position, of in enumerate(passed.values()):
        side = before[position].current_player()
        for k, ply in of.items():
            record, name = games.records[k], (position, games.records[k].actions[ply])
            utility = people.at(record.speed, sum(ratings_of(record)) / 2.0)
            own, other = common.seats(side, *ratings_of(record))
            logits = utility.of_ratings(own - other) + utility.pawn * np.array(
                [0.0, worth(after[name], side), worth(before[position], side)]
            )
            even, *values = 1.0 / (1.0 + np.exp(-logits))
            real = common.seats(side, WHITE_SCORES[record.result], 1.0 - WHITE_SCORES[record.result])[0]
            rows.append((position, numbers[name], k, real - even, *(each - even for each in values)))
    columns = np.array(rows).T
    choices = off_policy.Choices(*columns[:3].astype(np.int64), *columns[3:])
    sides = np.array([each.current_player() for each in before])[choices.position]
    slopes = {"best move against others": off_policy.move_slope(choices, _LEAST, seed=FLAGS.seed)}
    for player, color in enumerate(("White", "Black")):
        of_side = choices.only(sides == player)
        slopes[f"positions as {color}"] = off_policy.position_slope(of_side, seed=FLAGS.seed)
    table = [
        {
            "by": name,
            "positions": len(x.points),
            "passings": x.games,
            "slope": x.slope,
            "slope_error": x.error,
        }
        for name, x in slopes.items()
    ]
    show(f"Scores beyond ratings, where {_LEAST_GAMES.value} games or more chose", table)
    plot_slopes(folder / "off_policy.png", slopes)
    return [row | {"points": x.points} for row, x in zip(table, slopes.values(), strict=True)]


# -- speed, tables and figures -----------------------------------------------------------------------------


def check_speed(games: Games) -> dict[str, float]:
    """Print milliseconds a position on one core in batches, with the encoding of positions included."""
    apart = [each.state for each in games.drawn(True, _PLIES, 10 * _BATCH)]
    whole = itertools.chain.from_iterable(states_of(record) for _, record in games.part(later=True))
    found = {}
    for name, states in (("whole games", list(itertools.islice(whole, len(apart)))), ("drawn", apart)):
        times = []
        for _ in range(5):
            policy = chess.opponent_policy(chess.ChessGame({"max_plies": 1000}), "human(rating=1500)")
            ask, began = as_batch_policy(policy), time.process_time()
            for first in range(0, len(states), _BATCH):
                ask(states[first : first + _BATCH])
            times.append(1000.0 * (time.process_time() - began) / len(states))
        found[name] = min(times)
        print(f"A network, {name}: {min(times):.2f} ms a position, of five runs up to {max(times):.2f}")
    return found


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print a table, with each error behind its value."""
    print(f"\n{title}" if rows else f"\n{title}: too few games")
    if rows:
        names, cells = list(rows[0]), []
        errors = {name: after for name, after in itertools.pairwise(names) if after.endswith("error")}
        shown = [name for name in names if name not in errors.values()]
        for row in rows:
            texts = {
                name: f"{row[name]:.4f}" if isinstance(row[name], float) else row[name] for name in shown
            }
            texts |= {a: f"{row[a]:.3f} +- {row[b]:.3f}" for a, b in errors.items() if row[a] is not None}
            cells.append([texts[name] for name in shown])
        common.print_table(cells, shown)


def plot(
    path: pathlib.Path,
    rows: Sequence[dict[str, Any]],
    by: str,
    real: str,
    x: str,
    y: str,
) -> None:
    """Plot real against expected scores, a curve for each value of the column `by`."""
    with common.figure(path, figsize=(5.0, 4.4), dpi=90) as (figure, panel):
        ends = [of([row["expected"] for row in rows], default=1.0) for of in (min, max)]
        panel.plot(ends, ends, color="0.6", lw=1.0, label="as predicted")
        for k, name in enumerate(dict.fromkeys(row[by] for row in rows)):
            of = np.array(
                [(row["expected"], row[real], 2.0 * row["error"]) for row in rows if row[by] == name]
            )
            panel.errorbar(*of.T, fmt=common.curve_style(k), ms=3.5, lw=1.0, capsize=2, label=name)
        panel.set(xlabel=x, ylabel=f"{y} (two standard errors)")
        panel.legend()
        figure.tight_layout()


def plot_slopes(path: pathlib.Path, slopes: Mapping[str, off_policy.Slope]) -> None:
    with common.figure(path, 1, len(slopes), figsize=(10.0, 3.4), dpi=80) as (figure, panels):
        for panel, (name, of) in zip(panels, slopes.items(), strict=True):
            x, y, errors = np.array(of.points).T
            panel.errorbar(x, y, errors, fmt="o", ms=2.5, lw=0.4, alpha=0.6)
            ends = np.array([x.min(), x.max()])
            label = f"slope {of.slope:.2f} +- {of.error:.2f}"
            panel.plot(ends, of.intercept + of.slope * ends, lw=1.2, label=label)
            panel.set(title=name, xlabel="predicted gain", ylabel="real gain (one standard error)")
            panel.legend()
        figure.tight_layout()


def as_rows(found: Sequence[Any]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(each) for each in found]


def main(argv: Sequence[str]) -> None:
    del argv
    if not _GAMES.value or not _PLAYER.value:
        raise ValueError("--games: expected rated games with clocks, and --player, whose, got none")
    parts, people = common.chosen(_ONLY, _PARTS), load_people(_FIT.value)
    folder, games = common.output_folder(_OUTPUT_DIR.value), read()
    later = len(list(games.part(later=True)))
    print(f"{len(games.records)} games, of which the last {later} are predicted, from {games.cut:.2f} on")
    found: dict[str, Any] = {"games": len(games.records), "later": later, "cut": games.cut}
    with chess_runs.engines() as engines:
        if "speed" in parts:
            found["speed"] = check_speed(games)
        drawn = rated_games(_GAMES.value, seed=FLAGS.seed) if {"values", "clocks"} & {*parts} else None
        if drawn and "values" in parts:
            found |= check_values(people, drawn, engines.analyst, folder)
        if drawn and "clocks" in parts:
            found |= check_clocks(people, drawn, games, folder)
        if "off_policy" in parts:
            found["off_policy"] = check_choices(games, people, engines.analyst, folder)
        if "replies" in parts:
            found |= check_replies(games, engines.analyst, folder)
    common.write_json(folder / "people_check.json", found)
    print(f"\nWritten: {folder}/people_check.json, and a figure of each part")


if __name__ == "__main__":
    common.run(main)
