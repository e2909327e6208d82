r"""Computes the worth of preparation that also saves time. Example 2 of the precomputation paper.

Each player has a time for the whole game, in ticks, and loses when it has run out. A move that is searched
takes time; a memorized one takes none, so that more is left for the moves that follow. For several times of
the player who prepares, the best preparation is computed three times:

  moves only   what is memorized is better, but takes as long to play as searching would
  time only    what is memorized is what the search would find, but takes no time
  both         better moves that take no time

  python examples/clock_precomputation.py --game=tic_tac_toe --times=3,4,6,8,12
  python examples/clock_precomputation.py --chess --times=4,8,16 --penalty=0.01 --max_plies=16

In chess the engine's nodes are the time, --opponent_nodes a tick; where the book ends, both play on, their
likeliest moves, to --max_plies by their clocks, and the analyst's score of the last position counts.

Writes clock_precomputation.csv, clock_precomputation.png and settings.json.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import chess_runs
import common
import numpy as np
import sweeps
from absl import flags
from chess import Move

from precomp_games import ClockGame, HistoryTree, SearchClock, chess
from precomp_games.algorithms import BestPrecomputation, best_precomputation
from precomp_games.algorithms.search import SearchBudget, alpha_beta, known_of

FLAGS = flags.FLAGS
_CHESS = flags.DEFINE_boolean("chess", False, "Chess with an engine's nodes, in place of --game.")
_GAME = flags.DEFINE_string("game", "tic_tac_toe", "OpenSpiel game string; perfect information.")
_SIGMA_PRE = flags.DEFINE_string("sigma_pre", "pvs(depth=9)", "What can be memorized in --game.")
_OPPONENT = flags.DEFINE_string(
    "opponent", "softmax(policy=alpha_beta(depth=2),temperature=0.3)", "What the opponent plays in --game."
)
_OPPONENT_TICKS = flags.DEFINE_integer(
    "opponent_ticks", 1, "Ticks of each of its moves in --game.", lower_bound=0
)
_OPPONENT_TIME = flags.DEFINE_integer(
    "opponent_time", 20, "Ticks that the opponent has in --game.", lower_bound=1
)
_PLAYER = flags.DEFINE_integer("player", 0, "Who prepares.", 0, 1)
_TIMES = flags.DEFINE_list("times", ["3", "4", "5", "6", "8", "12"], "Ticks of the player, by commas.")
_NODES = flags.DEFINE_integer(
    "nodes_per_tick", 20, "Nodes of the player's search in a tick of --game.", lower_bound=1
)
_MOVES = flags.DEFINE_integer(
    "moves", 4, "The player gives each move this part of the time that is left.", lower_bound=1
)
_PRICE = flags.DEFINE_float("position_price", 0.02, "Utility that a memorized position costs in --game.")
_R = flags.DEFINE_float("r", 20.0, "Randomness of the opponent in chess, in centipawns.")
sweeps.define_output_flag("output/clock_precomputation")
common.define_chess_flags()
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(sweeps)

_BEYOND = 100  # plies after the last one that is played on to
_WAYS = ("moves only", "time only", "both")


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.game_folder()
    values = sorted(set(common.numbers(_TIMES, "integers of at least 1", lambda ticks: ticks >= 1, int)))
    rows = chess_rows(values) if _CHESS.value else game_rows(values)
    common.write_csv(folder / "clock_precomputation.csv", rows)
    settings: dict[str, Any] = {"times": values, "player": _PLAYER.value, "moves": _MOVES.value}
    if _CHESS.value:
        settings |= chess_runs.settings(_PLAYER.value, _R.value).as_dict()
    else:
        named = (_GAME, _SIGMA_PRE, _OPPONENT, _OPPONENT_TICKS, _OPPONENT_TIME, _NODES, _PRICE)
        settings |= sweeps.values_of(*(flag.name for flag in named))
    common.write_json(folder / "settings.json", settings)
    print("Value of the best preparation, its price taken off (positions learnt; those sigma plays anyway)")
    for row in rows:
        for way in _WAYS:
            size, same = row[f"{way}: size"], row[f"{way}: same moves"]
            row[way] = f"{row[f'{way}: value']:.4f} ({size}; {same})"
    sweeps.print_rows(rows, {name: name for name in ("ticks", "unprepared", *_WAYS)})
    if _CHESS.value:
        print(f"\n{chess_runs.settings(_PLAYER.value, _R.value).kind.note()}", end="")
    more = [f"{row['both: value'] - row['moves only: value']:+.4f} at {row['ticks']}" for row in rows]
    saved = [str(row["ticks"]) for row in rows if row["time only: size"] > 0]
    print(
        "\nExpected: saved time is worth the most where time is short.\n"
        f"Got: better moves are worth {', '.join(more)} ticks more where they save time; moves that the\n"
        f"search would find anyway are worth learning for their time alone at {', '.join(saved) or 'no'}."
    )
    plot(rows, folder / "clock_precomputation.png")
    print(f"Written: {folder}/clock_precomputation.csv, clock_precomputation.png, settings.json")


def plot(rows: Sequence[dict[str, Any]], path: pathlib.Path) -> None:
    """Plot the value and the size of the best preparation of each kind against the time."""
    with common.figure(path, 2, figsize=(7.0, 6.4), sharex=True) as (figure, (worth, size)):
        sweeps.curve(worth, rows, "ticks", "unprepared", "k:", "unprepared")
        for k, way in enumerate(_WAYS):
            for panel, number in ((worth, "value"), (size, "size")):
                sweeps.curve(panel, rows, "ticks", f"{way}: {number}", common.curve_style(k), way, ms=4)
        worth.set_ylabel(f"utility of player {_PLAYER.value}, price taken off")
        worth.set_title("What the best preparation is worth")
        worth.legend()
        size.set(xlabel="time of the player who prepares, ticks", ylabel="positions learnt")
        size.set_ylim(bottom=0.0)
        figure.tight_layout()


def compared(
    game: ClockGame, own: Any, rival: Any, book: Any, price: float, key: Any, leaf_value: Any
) -> dict[str, Any]:
    """Return the best preparation in the three ways, on one clock game.

    own, rival: policies of the clock game. book: of the base game.
    """
    player = _PLAYER.value

    def ticks(state: Any) -> int:
        return max(game.decode(action)[1] for action in own.action_probabilities(state))

    def searched(state: Any) -> dict[int, float]:
        """Return the search's move probabilities, with moves that take no time."""
        played = own.action_probabilities(state).items()
        return {game.encode(game.decode(action)[0], 0): p for action, p in played}

    row: dict[str, Any] = {"ticks": game.times[player]}
    policies = (game.policy(book, ticks), searched, game.policy(book))
    for way, prepared in zip(_WAYS, policies, strict=True):
        tree = HistoryTree.from_game(
            game,
            sigma_pre=prepared,
            sigma=common.seats(player, own, rival),
            penalties=common.seats(player, price, math.inf),
            leaf_value=leaf_value,
            # Not what the leaves are worth, which lie elsewhere in each way: where values are no
            # expectations (chess), being unprepared would be worth something else each time.
            stop_value="evaluate",
            truncate="values",
            position_key=key,
        )
        best = best_precomputation(tree, player)
        row["unprepared"] = best.unprepared
        row[f"{way}: value"], row[f"{way}: size"] = best.value, best.size
        row[f"{way}: same moves"] = same_moves(game, best, own)
    return row


def same_moves(game: ClockGame, best: BestPrecomputation, own: Any) -> int:
    """Count the memorized moves that the player would have played anyway."""
    count = 0
    for known in best.states():
        memorized = {game.decode(action)[0] for action in best.tree.memorized_row(known.entry)}
        played = own.action_probabilities(best.tree.state(known.history))
        count += memorized == {game.decode(action)[0] for action, p in played.items() if p > 0.0}
    return count


def game_rows(values: Sequence[int]) -> list[dict[str, Any]]:
    """Return a game with search policies; the player's searches have budgets in nodes."""
    base = common.named_game(_GAME.value)
    book, rival = common.policy(base, _SIGMA_PRE.value), common.policy(base, _OPPONENT.value)
    evaluator, _, key = known_of(base)
    rows = []

    def search(state: Any, nodes: int) -> Any:
        return alpha_beta(state, SearchBudget(nodes=nodes), evaluator=evaluator)

    for ticks in common.progress_bar(values, desc="Times", leave=False):
        clocks = common.seats(_PLAYER.value, ticks, _OPPONENT_TIME.value)
        game = ClockGame({"game": base, "time_0": clocks[0], "time_1": clocks[1]})
        own = SearchClock(_NODES.value, _MOVES.value).policy(game, search, key)
        opponent = game.policy(rival, _OPPONENT_TICKS.value)
        rows.append(compared(game, own, opponent, book, _PRICE.value, game.position_key(key), "exact"))
    return rows


# -- chess -----------------------------------------------------------------------------------------------


class TimedEngine:
    """A policy of a clock game over chess: the best move of a search as long as the clock allows."""

    def __init__(self, game: ClockGame, engine: chess.StoredEngine, clock: SearchClock, multipv: int) -> None:
        self._game, self._engine, self._clock, self._multipv = game, engine, clock, multipv

    def action_probabilities_batch(self, states: Sequence[Any]) -> list[dict[int, float]]:
        allotted = [self._clock.allotted(state.left[state.current_player()]) for state in states]
        rows: list[dict[int, float]] = [{} for _ in states]
        for ticks in sorted(set(allotted)):
            which = [k for k, spent in enumerate(allotted) if spent == ticks]
            limit = chess.SearchLimit(nodes=ticks * self._clock.nodes_per_tick)
            results = self._engine.search([states[k].base.epd for k in which], limit, self._multipv)
            for k, result in zip(which, results, strict=True):
                move = chess.action_of(Move.from_uci(result.lines[0].move))
                rows[k] = {self._game.encode(move, ticks): 1.0}
        return rows

    def action_probabilities(self, state: Any) -> dict[int, float]:
        return self.action_probabilities_batch([state])[0]


class PlayedOn:
    """Leaf values by playout: both play their likeliest moves to some ply, where the evaluation scores."""

    def __init__(self, policies: tuple[Any, Any], evaluation: chess.EngineEvaluation, plies: int) -> None:
        self._policies, self._evaluation, self._plies = policies, evaluation, plies

    def evaluate_batch(self, states: Sequence[Any]) -> np.ndarray:
        playing = [state.clone() for state in states]
        while True:
            ahead = [s for s in playing if not s.is_terminal() and s.base.ply < self._plies]
            if not ahead:
                break
            for player in (0, 1):
                movers = [s for s in ahead if s.current_player() == player]
                rows = self._policies[player].action_probabilities_batch(movers) if movers else []
                for state, row in zip(movers, rows, strict=True):
                    # Of equally likely moves the first, so that the value is a function of the state.
                    state.apply_action(max(sorted(row), key=lambda action: row[action]))
                ahead = [s for s in ahead if s not in movers]
        values = np.array([state.returns()[0] for state in playing])
        scored = [k for k, state in enumerate(playing) if not state.is_terminal()]
        if scored:
            values[scored] = self._evaluation.evaluate_batch([playing[k].base for k in scored])
        return values


def chess_rows(values: Sequence[int]) -> list[dict[str, Any]]:
    """Yield the rows of chess, where time is the engine's nodes: --opponent_nodes of them a tick."""
    player, rows = _PLAYER.value, []
    settings = chess_runs.settings(player, _R.value, evaluated=True)
    if settings.opponent_limit.nodes is None:
        raise ValueError(
            "--opponent_movetime_ms: expected nodes, which are the clock's time, got a move time"
        )
    # A book that goes on to the last ply is scored there, and not a draw by the rules of `ChessGame`.
    base = dataclasses.replace(settings, max_plies=settings.max_plies + _BEYOND).game()
    with chess_runs.engines() as engines:
        policies = engines.policies(settings)
        book, replies = policies.sigma_pre[player], policies.sigma[1 - player]
        clock = SearchClock(nodes_per_tick=settings.opponent_limit.nodes, moves=_MOVES.value)
        plies = base.get_parameters()["max_plies"]  # ticks enough for the opponent
        for ticks in values:
            clocks = common.seats(player, ticks, plies)
            game = ClockGame({"game": base, "time_0": clocks[0], "time_1": clocks[1]})
            own = TimedEngine(game, engines.analyst, clock, settings.top_k)
            rival = game.policy(replies, 1)
            leaves = PlayedOn(common.seats(player, own, rival), policies.leaf_value, settings.max_plies)
            key = game.position_key(chess.position_key)
            rows.append(compared(game, own, rival, book, settings.penalty, key, leaves))
    return rows


if __name__ == "__main__":
    common.run(main)
