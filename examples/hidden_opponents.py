r"""Twelve games against an engine that is one of 24: how soon is a book as good as for whoever knows it?

  python examples/hidden_opponents.py --opponents=3 --output_dir=output/hidden_opponents

The opponent is an engine with some limit of nodes that plays its k best moves at random: one of a family of
4 limits, 3 r and 2 k, drawn by --hidden_seed and told to nobody. Before each game of a match the book is made
anew from the games so far (`prepare_from_games`): they say who it probably is. Each of these books is then
tried in games of its own against the opponent, beside the book that is made in the same way by whoever knows
the opponent, and beside none, all by the same seeds. Prints all three by game, means over opponents, and how
long a plan took where all of its searches were stored; writes games.csv, games.png and games.svg.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
import numpy as np
from absl import flags

from precomp_games.chess import (
    Book,
    EngineError,
    EngineFamily,
    Engines,
    PreparationSettings,
    SparringGames,
    opponent_policy,
    prepare_from_games,
)
from precomp_games.commands._preparing import define_preparation_flags, preparation_settings

FLAGS = flags.FLAGS
_FAMILY = flags.DEFINE_string(
    "family",
    "family(nodes=400:3200,r=5:20,k=2:3,num_limits=4,num_temperatures=3)",
    "Of whom the opponent is one, as an opponent by name.",
)
_OPPONENTS = flags.DEFINE_integer("opponents", 3, "Hidden opponents, each in a match.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 12, "Games of a match.", lower_bound=1)
_TEACHING = flags.DEFINE_integer("teaching", 200, "Games between models that teach each book.", 0)
_HIDDEN_SEED = flags.DEFINE_integer("hidden_seed", 0, "By which opponents are drawn.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/hidden_opponents", "Where files go.")
define_preparation_flags(FLAGS)
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(chess_runs)
FLAGS.set_default("budget", 100)
FLAGS.set_default("own_repeats", False)
FLAGS.set_default("max_evaluations", 4000)


def main(argv: Sequence[str]) -> None:
    del argv
    if not FLAGS.match_games:
        raise ValueError("--match_games: expected an integer of at least 1, got 0")
    settings = dataclasses.replace(preparation_settings(FLAGS), opponent=_FAMILY.value)
    folder = common.output_folder(FLAGS.output_dir)
    with chess_runs.engines() as engines:
        if not engines.can_search:
            raise EngineError("expected an engine to play games, got stored searches alone")
        family = opponent_policy(settings.game(), settings.opponent, engines.opponent, trusted=True)
        if not isinstance(family, EngineFamily):
            raise ValueError(f"--family: expected family(...), got {_FAMILY.value!r}")
        drawn = np.random.default_rng(_HIDDEN_SEED.value).permutation(len(family.members))
        matches = [_match(settings, engines, family, k) for k in drawn[: _OPPONENTS.value].tolist()]
    rows = [row for each in matches for row in each]
    common.write_csv(folder / "games.csv", rows)
    _report(rows)
    _plot(rows, folder / "games.png")
    print(f"Written: {folder}/games.csv, games.png, games.svg")


def _known(settings: PreparationSettings, family: EngineFamily, number: int) -> PreparationSettings:
    """Settings of whoever knows the opponent."""
    member = family.members[number]
    r = f"{member.temperature_cp:.15g}"
    spec = f"uci(nodes={member.nodes},r={r},top_k={member.top_k})"
    return dataclasses.replace(settings, opponent=spec)


def _match(
    settings: PreparationSettings, engines: Engines, family: EngineFamily, number: int
) -> list[dict[str, Any]]:
    """A match against a member of the family: what each of its games was played with, and is worth."""
    known = _known(settings, family, number)
    start = settings.game().new_initial_state().board
    side = not settings.player

    def tried(name: str, book: Book) -> float:
        games, seed = FLAGS.match_games, (FLAGS.match_seed, number, 1)
        return engines.match(name, book, settings, games, seed=seed, against=known).score

    def plan(of: PreparationSettings, games: SparringGames) -> Book:
        how = {"budget": FLAGS.budget, "teaching": _TEACHING.value, "max_evaluations": FLAGS.max_evaluations}
        return prepare_from_games(of, engines, games, **how).book

    nothing = SparringGames("nobody")
    without, knowing = tried("Without a book", Book(start, side, ())), tried("Knowing", plan(known, nothing))
    member = family.members[number]
    print(
        f"n = {member.nodes}, r = {member.temperature_cp:.3g}, k = {member.top_k}: {without:.2f} without a "
        f"book, {knowing:.2f} for whoever knows it",
        flush=True,
    )
    played: list[Any] = []  # results of matches of one game
    rows = []
    for game in range(_ROUNDS.value):
        games = SparringGames.of_matches(played)
        plan(settings, games)  # makes the searches, so that the next one says what a plan takes
        began = time.perf_counter()
        book = plan(settings, games)
        seconds = time.perf_counter() - began
        seed = (_HIDDEN_SEED.value, number, game, 2)
        played.append(engines.match(f"Game {game + 1}", book, settings, 1, seed=seed, against=known))
        score = tried(f"Book of game {game + 1}", book)
        rows.append(
            {
                "nodes": member.nodes,
                "r": member.temperature_cp,
                "k": member.top_k,
                "game": game + 1,
                "score": score,
                "knowing": knowing,
                "without": without,
                "seconds": seconds,
            }
        )
        print(f"  game {game + 1:>2}: the book scores {score:.2f}, made in {seconds:.1f} s", flush=True)
    return rows


def _report(rows: Sequence[dict[str, Any]]) -> None:
    """Prints means over opponents, by game."""
    table = []
    for game in range(1, _ROUNDS.value + 1):
        of = [row for row in rows if row["game"] == game]
        means = [
            sum(row[name] for row in of) / len(of) for name in ("score", "knowing", "without", "seconds")
        ]
        table.append((game, *(f"{mean:.3f}" for mean in means[:3]), f"{means[3]:.1f}"))
    print()
    common.print_table(table, ("game", "by the games", "knowing who it is", "no book", "seconds a plan"))
    late = [row["score"] - row["knowing"] for row in rows if row["game"] >= 4]
    if late:
        print(f"From the fourth game on {sum(late) / len(late):+.3f} beside whoever knows it.")


def _plot(rows: Sequence[dict[str, Any]], path: Any) -> None:
    """Scores by game."""
    with common.figure(path, figsize=(7.0, 4.0), page=True) as (figure, panel):
        games = range(1, _ROUNDS.value + 1)
        for name, label, style in (
            ("score", "made from the games before", "o-"),
            ("knowing", "made by whoever knows the opponent", "--"),
            ("without", "no book", ":"),
        ):
            means = [np.mean([row[name] for row in rows if row["game"] == game]) for game in games]
            panel.plot(games, means, style, label=label)
        panel.set_ylim(0.0, 1.02)
        panel.set_xlabel(f"game of the match, mean of {_OPPONENTS.value} opponents")
        panel.set_ylabel(f"score, in {FLAGS.match_games} games each")
        panel.legend(loc="lower right")
        figure.tight_layout()


if __name__ == "__main__":
    common.run(main)
