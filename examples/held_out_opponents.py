r"""Does a book hold against opponents that it was not made for? A sample says so, and what to promise.

  python examples/held_out_opponents.py --side=white --output_dir=output/held_out_opponents

A book's promise is as good as the model of the opponent. Here opponents are drawn from a distribution that
no preparation knows (`drawn`): engines with 300 to 4,000 nodes a move that draw among their 2 to 5 best moves
with r from 5 to 60, engines with a Skill Level, engines as they answer, and another engine (--other_engine).
Books are made against the model of the flags ("the model"), against four points ("four points"), and against
a family ("the family", --family), of --budget positions at most. Out of book nobody repeats a position while
ahead. Each is played against --calibrate opponents and against --test others, --games each, and so is no
book: what a book is for is the gain, its score less what there is without one. Whoever tries out how books
are to be made does so with --tuning.

The lowest gain of 19 opponents is a promise that needs no model: a new opponent of the same distribution is
below it in one case of 20 at most, since each of the 20 is equally likely to be the lowest. --made_for=N also
makes books of the family's size for N of the tested opponents, and says what share of their gain the family's
book has.

Prints all gains, writes result.json, opponents.png and opponents.svg, and each book in a folder of its own.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
import numpy as np
from absl import flags

from precomp_games.chess import (
    Book,
    EngineError,
    Engines,
    Preparation,
    PreparationSettings,
    SearchLimit,
    find_engine,
    write_preparation,
)
from precomp_games.commands._preparing import define_preparation_flags, preparation_settings, prepared

_TUNE = 12  # opponents to try things with, in neither the promise nor the test
_NODES, _R, _TOP_K, _SKILL = (300, 4000), (5.0, 60.0), (2, 5), (3, 15)
_SAMPLES = 5  # draws by which an engine with a Skill Level is known in a position
_POINTS = (5.0, 10.0, 20.0, 40.0)
_FAMILY_LOOK = {"penalty": 2e-5, "menu": 4, "analyst_limit": SearchLimit(nodes=20_000)}
"""How the family's book is looked for: further than one opponent's, which has longer lines for its reach."""

FLAGS = flags.FLAGS
_CALIBRATE = flags.DEFINE_integer("calibrate", 19, "Opponents whose lowest gain is the promise.", 1)
_TEST = flags.DEFINE_integer("test", 20, "Opponents that the promise is tried on.", 1)
_BOOKS = flags.DEFINE_list(
    "books", ["the model", "four points", "the family"], "Which books to make; see above."
)
_FAMILY = flags.DEFINE_string(
    "family", "family(nodes=300:4000,r=5:60,k=2:4,num_k=2)", "The family, as an opponent by name."
)
_MADE_FOR = flags.DEFINE_integer("made_for", 0, "Tested opponents that have a book made for them.", 0)
_OTHER_ENGINE = flags.DEFINE_string("other_engine", None, "Another engine, to draw opponents from as well.")
_TUNING = flags.DEFINE_bool(
    "tuning", False, f"Play against the first {_TUNE} opponents alone, which are there to try things with."
)
_OPPONENTS_SEED = flags.DEFINE_integer("opponents_seed", 2026, "Seed of the opponents.", 0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/held_out_opponents", "Where files go.")
define_preparation_flags(FLAGS)
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(chess_runs)
flags.DEFINE_alias("games", "match_games")
FLAGS.set_default("match_games", 200)
FLAGS.set_default("budget", 200)
FLAGS.set_default("own_repeats", False)


def drawn(seed: int, count: int, engine: str, other: str | None) -> list[str]:
    """Opponents by name, independent draws of one distribution; the first of more are those of fewer."""
    return [_drawn(np.random.default_rng([seed, number]), engine, other) for number in range(count)]


def _drawn(rng: np.random.Generator, engine: str, other: str | None) -> str:
    kind = rng.random()
    nodes = round(math.exp(rng.uniform(*np.log(_NODES))))
    r, top_k = math.exp(rng.uniform(*np.log(_R))), int(rng.integers(_TOP_K[0], _TOP_K[1] + 1))
    skill = int(rng.integers(_SKILL[0], _SKILL[1] + 1))
    plain = f"nodes={nodes},r={r:.3g},top_k={top_k}"
    if kind < 0.1:
        return f"uci(nodes={nodes},plays=bestmove)"
    if kind < 0.2:
        options = f"options=of(Skill_Level={skill})"
        return f"uci(engine={json.dumps(engine)},nodes={nodes},plays=bestmove,samples={_SAMPLES},{options})"
    if kind < 0.3 and other is not None:
        return f"uci(engine={json.dumps(other)},{plain})"
    return f"uci({plain})"


def main(argv: Sequence[str]) -> None:
    del argv
    if not FLAGS.match_games:
        raise ValueError("--games: expected an integer of at least 1, got 0")
    settings = preparation_settings(FLAGS)
    models = books_of(settings)
    folder = common.output_folder(FLAGS.output_dir)
    with chess_runs.engines() as engines:
        if not engines.can_search:
            raise EngineError("expected an engine to play games, got stored searches alone")
        other = None if _OTHER_ENGINE.value is None else str(find_engine(_OTHER_ENGINE.value))
        opponents = drawn(_OPPONENTS_SEED.value, sum(_counts()), str(find_engine(FLAGS.engine)), other)
        made = {}
        for name, model in models.items():
            before = engines.searches
            made[name] = each = prepared(FLAGS, model, engines, FLAGS.budget)
            told = f"{len(each.book)} positions, promised {each.utility:.3f}"
            print(f"{name.capitalize():<20}{told}, {engines.searches - before} searches", flush=True)
            write_preparation(each, common.output_folder(str(folder / name.replace(" ", "_"))))
        begin, end = (0, _TUNE) if _TUNING.value else (_TUNE, len(opponents))
        rows = [_row(number, opponents[number], made, engines) for number in range(begin, end)]
        for row in rows[_CALIBRATE.value :][: _MADE_FOR.value]:
            size = len(made.get("the family", each).book)
            own = prepared(FLAGS, _against(settings, row["opponent"]), engines, size)
            row["gains"]["made for it"] = _score(own, own.book, row["opponent"], engines) - row["unprepared"]
    summary = {name: summarized(name, rows) for name in made}
    report(rows, summary)
    result = {"seed": _OPPONENTS_SEED.value, "games": FLAGS.match_games, "tuning": _TUNING.value}
    result["positions"] = {name: len(each.book) for name, each in made.items()}
    common.write_json(folder / "result.json", result | {"summary": summary, "opponents": rows})
    plot(rows, folder / "opponents.png")
    print(f"Written: {folder}/result.json, opponents.png, opponents.svg, and a folder for each book")


def books_of(settings: PreparationSettings) -> dict[str, PreparationSettings]:
    """What the books of --books are made against."""
    changes: dict[str, dict[str, Any]] = {
        "the model": {},
        "four points": {"opponent_temperature_cp": _POINTS, "opponent_weights": ()},
        "the family": {"opponent": _FAMILY.value, **_FAMILY_LOOK},
    }
    for name in _BOOKS.value:
        if name not in changes:
            raise ValueError(f"--books: expected some of {','.join(changes)}, got {name!r}")
    return {name: dataclasses.replace(settings, **changes[name]) for name in _BOOKS.value}


def _against(settings: PreparationSettings, spec: str) -> PreparationSettings:
    return dataclasses.replace(settings, opponent=spec)


def _counts() -> tuple[int, int, int]:
    """How many opponents there are for each use, in the order in which they are drawn."""
    return _TUNE, _CALIBRATE.value, _TEST.value


def _score(made: Preparation, book: Book, opponent: str, engines: Engines) -> float:
    """A book's mean score against an opponent, with the own play of a preparation."""
    against, games = _against(made.settings, opponent), FLAGS.match_games
    return engines.match("Playing", book, made.settings, games, seed=FLAGS.match_seed, against=against).score


def _row(number: int, opponent: str, made: Mapping[str, Preparation], engines: Engines) -> dict[str, Any]:
    """What books gain against an opponent."""
    first = next(iter(made.values()))
    unprepared = _score(first, Book(first.book.start, first.book.side, ()), opponent, engines)
    gains = {name: _score(each, each.book, opponent, engines) - unprepared for name, each in made.items()}
    told = " ".join(f"{gain:+.2f}" for gain in gains.values())
    print(f"{number:>3}  {unprepared:.2f}  {told}  {opponent}", flush=True)
    tested = number >= _TUNE + _CALIBRATE.value
    return {"opponent": opponent, "tested": tested, "unprepared": unprepared, "gains": gains}


def summarized(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a book gains, and what came of the promise, where there is one."""
    calibrated = [row["gains"][name] for row in rows if not row["tested"]]
    gains = np.array([row["gains"][name] for row in rows if row["tested"]] or calibrated)
    promise = None if _TUNING.value else min(calibrated)
    return {
        "promise": promise,
        "mean_gain": float(gains.mean()),
        "worst_gain": float(gains.min()),
        "kept": None if promise is None else int((gains >= promise).sum()),
        "opponents": len(gains),
    }


def report(rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the summary, and what share of the gain of books made for opponents the family's has."""
    table = [
        (
            each["mean_gain"],
            each["worst_gain"],
            math.nan if each["promise"] is None else each["promise"],
            "" if each["kept"] is None else f"{each['kept']} of {each['opponents']}",
            name,
        )
        for name, each in summary.items()
    ]
    print()
    common.print_table(table, ("mean gain", "worst", "promised", "kept by", "made against"))
    both = [row["gains"] for row in rows if {"made for it", "the family"} <= row["gains"].keys()]
    if both:
        own, family = (sum(each[name] for each in both) / len(both) for name in ("made for it", "the family"))
        print(
            f"Books made for one of {len(both)} opponents gain {own:.3f} there; the family's, {family:.3f}, "
            f"has {family / own:.0%} of it."
        )


def plot(rows: Sequence[Mapping[str, Any]], path: Any) -> None:
    """Gains by opponent, the strongest at the left."""
    ordered = sorted(rows, key=lambda row: row["unprepared"])
    with common.figure(path, figsize=(8.0, 4.4), page=True) as (figure, panel):
        panel.axhline(0.0, color="0.5", lw=1.0)
        markers = ("o", "s", "^", "D")
        names = list(dict.fromkeys(name for row in ordered for name in row["gains"]))
        for name, marker in zip(names, markers, strict=False):
            points = [(k, row["gains"][name]) for k, row in enumerate(ordered) if name in row["gains"]]
            panel.plot(
                *zip(*points, strict=True),
                marker,
                ms=6,
                label=f"made against {name}" if name != "made for it" else name,
            )
        panel.set_xticks(range(len(ordered)), [f"{row['unprepared']:.2f}" for row in ordered], rotation=90)
        panel.set_xlabel("opponents that nobody prepared for, by what is scored without a book")
        panel.set_ylabel(f"gain over no book, {FLAGS.match_games} games")
        panel.legend(loc="best", frameon=True)
        figure.tight_layout()


if __name__ == "__main__":
    common.run(main)
