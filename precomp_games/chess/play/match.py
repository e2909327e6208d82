"""A match: games of a book's player against the opponent that it was made for, by the rules of chess.

A preparation's expected score is that of its leaf values, at the positions in which games leave the book. A
match measures the real score. The opponent is a policy over `ChessGame`, as in preparations. We play the book
while the game is in it, by history, since a book counts histories; after the first position that it does not
have, our own policy plays to the end.

Rules: checkmate, stalemate, material with which nobody can mate, the third occurrence of a position, fifty
moves of both sides without capture or pawn move, and a draw after `max_plies` half-moves. Draws are claimed
as soon as they stand on the board; a move that would only bring one about is not announced.

Randomness: each game has a stream of its own, of the seed and the game's number, so neither workers nor
the number of simultaneous games change any game. No roll-out, sample or equilibrium in the library has the
same streams, whatever their seeds: the games that trained a book are not played again.

Cost: all games under way are asked about at once, a batch for each side, so that an engine pool is busy. A
`StoredEngine` searches a position once, in whichever games it comes up.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import pathlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import chess
import chess.pgn
import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.files import atomic_write
from precomp_games._support.results import Result
from precomp_games.chess.data.book import Book, BookExit, Exits, pgn_text, points, set_headers
from precomp_games.chess.data.game_records import RESULTS
from precomp_games.chess.game import RULES_OF_CHESS, ChessGame, ChessState, Plies, action_of
from precomp_games.policies import rows as policies
from precomp_games.policies.leaf_values import Evaluator, evaluated
from precomp_games.policies.playouts import mean_interval, play_on

MATCH_PLIES: int = RULES_OF_CHESS["max_plies"]
"""Half-moves after which a game of a match is a draw."""

_STREAMS = int.from_bytes(b"match", "big")  # the spawn key of a match's streams
_MAX_GAMES = 10_000_000
_LEAST_GAMES = 4  # for a position's score
_NEAR = 0.1  # largest distance of its score from the value


@dataclasses.dataclass(frozen=True)
class MatchGame:
    """A game of a match.

    Attributes:
      number: Its number, from 0.
      moves: All of them.
      score: The book's side's: 1, 1/2 or 0.
      ending: Why it was over: "checkmate", "stalemate", "insufficient material", "threefold repetition",
        "fifty moves", or "too long".
      left: The ply at which the book first had no move; None: the game ended inside it.
    """

    number: int
    moves: tuple[chess.Move, ...]
    score: float
    ending: str
    left: int | None

    @property
    def exit(self) -> tuple[chess.Move, ...]:
        """History of its `BookExit`."""
        return self.moves[: self.left]


@dataclasses.dataclass(frozen=True)
class ExitScore:
    """An exit, and the games of a match that left there.

    Attributes:
      exit: The exit; its reach is 0 if no game was expected.
      games: Number of games.
      score: Their mean score, NaN without games.
      interval: 95 %, of this exit's score; (0, 1) without games.
    """

    exit: BookExit
    games: int
    score: float
    interval: tuple[float, float]


@dataclasses.dataclass(frozen=True)
class MatchResult(Result):
    """The games of a match.

    Attributes:
      book: The book.
      games: At least one, in order.
    """

    book: Book
    games: tuple[MatchGame, ...]

    @functools.cached_property
    def scores(self) -> npt.NDArray[np.float64]:
        """float64[games]: scores of the book's side."""
        return np.array([game.score for game in self.games])

    @property
    def score(self) -> float:
        """Mean score."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, from the games' variance; NaN for a single game."""
        count = len(self.games)
        return float(self.scores.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the expected score.

        By `mean_interval`: a hundred wins do not prove that every game will be won.
        """
        return mean_interval(self.scores, 0.0, 1.0)

    @property
    def inside(self) -> int:
        """Number of games that ended inside the book."""
        return sum(game.left is None for game in self.games)

    def columns(self) -> dict[str, Any]:
        """Return a row for each game: its score, ending, plies, and the ply at which it left the book."""
        games = self.games
        return {
            "score": self.scores,
            "ending": [game.ending for game in games],
            "plies": [len(game.moves) for game in games],
            "left": [game.left for game in games],
        }

    @public
    def exit_scores(self, exits: Exits) -> list[ExitScore]:
        """Return scores by exit, the most reached one first, then those where no game was expected.

        Args:
          exits: of `book_exits`.
        """
        expected = list(exits)
        scores: dict[tuple[chess.Move, ...], list[float]] = defaultdict(list)
        over = {}
        for game in self.games:
            scores[game.exit].append(game.score)
            over[game.exit] = game.left is None
        known = {each.history for each in expected}
        expected += [BookExit(each, over[each], 0.0, None) for each in scores if each not in known]
        return [_exit_score(each, scores.get(each.history, [])) for each in expected]


def _exit_score(where: BookExit, scores: Sequence[float]) -> ExitScore:
    if not scores:
        return ExitScore(where, 0, math.nan, (0.0, 1.0))
    found = np.array(scores)
    return ExitScore(where, len(scores), float(found.mean()), mean_interval(found, 0.0, 1.0))


@public
def book_exits(
    book: Book,
    opponent: policies.PolicyLike,
    leaf_value: Evaluator | None = None,
    *,
    horizon: Plies = MATCH_PLIES,
    max_plies: Plies = MATCH_PLIES,
    min_probability: policies.LeastProbability = 1e-9,
) -> list[BookExit]:
    """Return the exits of a book, with their reach and expected scores; the most reached first.

    Args:
      book: the book.
      opponent: a policy over `ChessGame`.
      leaf_value: White's values where play leaves the book: `PreparationPolicies.leaf_value`, or a function
        from a state to a utility. None: expected scores are unknown, except in games that are over.
      horizon: `PreparationSettings.max_plies`, from which on a preparation counts a draw.
      max_plies: of the match.
      min_probability: the opponent's less likely moves are pruned, as in preparations.

    Raises:
      ValueError: `opponent` or `leaf_value` does not answer as it should.
    """
    policy = policies.as_batch_policy(opponent, "opponent")
    state = _start(book, max_plies)
    memorized = memorized_rows(book)
    ends: list[tuple[ChessState, float]] = []
    level = [(state, 1.0)]
    while level:
        following: list[tuple[ChessState, float]] = []
        asked: list[tuple[ChessState, float]] = []
        for state, reach in level:
            if state.is_terminal():
                ends.append((state, reach))
            elif state.board.turn != book.side:
                asked.append((state, reach))
            elif (row := memorized.get(tuple(state.history()))) is None:
                ends.append((state, reach))
            else:
                following += [(state.child(a), reach * p) for a, p in row.items()]
        if asked:
            rows = policies.policy_rows(
                policy, [state for state, _ in asked], name="opponent", min_probability=min_probability
            )
            for k, (state, reach) in enumerate(asked):
                for j in range(rows.start[k], rows.start[k + 1]):
                    following.append((state.child(int(rows.action[j])), reach * float(rows.probability[j])))
        level = following
    promises = _promises(book, [state for state, _ in ends], leaf_value, horizon)
    exits = [
        BookExit(tuple(state.moves()), state.is_terminal(), reach, promised)
        for (state, reach), promised in zip(ends, promises, strict=True)
    ]
    return sorted(exits, key=lambda each: (-each.reach, [move.uci() for move in each.history]))


def _promises(book: Book, states: Sequence[ChessState], leaf_value: Any, horizon: int) -> list[float | None]:
    """Return a preparation's value of each end of a book, for its side."""
    asked = [state for state in states if not state.is_terminal() and state.ply < horizon]
    estimated = leaf_value is not None
    values = iter(evaluated(leaf_value, asked, "leaf_value").tolist() if estimated and asked else ())

    def promise(state: ChessState) -> float | None:
        if state.is_terminal():
            return _score(state, book.side)
        if not estimated or state.ply >= horizon:
            return 0.5 if estimated else None
        white = float(next(values))
        return white if book.side == chess.WHITE else 1.0 - white

    return [promise(state) for state in states]


@dataclasses.dataclass(frozen=True)
class _FromBook:
    """A book's player: the book while the game has been in it, and its own play after it."""

    memorized: Mapping[tuple[int, ...], dict[int, float]]
    own: policies.BatchPolicy

    def action_probabilities_batch(self, states: Sequence[ChessState]) -> list[Mapping[int, float]]:
        """Return {action: probability} for each state."""
        rows = [self.memorized.get(tuple(state.history())) for state in states]
        unknown = [state for state, row in zip(states, rows, strict=True) if row is None]
        answers = iter(self.own(unknown) if unknown else ())
        return [next(answers) if row is None else row for row in rows]


@public
def play_match(
    book: Book,
    opponent: policies.PolicyLike,
    own: policies.PolicyLike,
    games: Annotated[int, checks.Ge(1), checks.Le(_MAX_GAMES)] = 100,
    *,
    seed: checks.Seed = 0,
    max_plies: Plies = MATCH_PLIES,
    min_probability: policies.LeastProbability = 1e-9,
    batch: Annotated[int, checks.Ge(1), checks.Le(_MAX_GAMES)] = 256,
) -> MatchResult:
    """Play games from a book's start.

    Args:
      book: one side plays from it, while its games are in it; an empty one is no book.
      opponent: the other side's policy over `ChessGame`, e.g. `PreparationPolicies.sigma` of the opponent.
      own: the policy of the book's side out of book, e.g. `PreparationPolicies.sigma` of the player.
      games: number of games.
      seed: of the games. With the same seed, the first games of a longer match are those of a shorter one.
      max_plies: half-moves after which a game is a draw.
      min_probability: less likely moves of the policies are not played, as in preparations.
      batch: number of simultaneous games; no game depends on it.

    Raises:
      ValueError: a policy does not answer as it should.
      EngineError: an engine fails, or there are only stored searches and one is missing.
    """
    policies.as_batch_policy(opponent, "opponent")
    start = _start(book, max_plies)
    play = _FromBook(memorized_rows(book), policies.as_batch_policy(own, "own"))
    ends = play_on(
        [start] * games,
        (play, opponent) if book.side == chess.WHITE else (opponent, play),
        [
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS, number)))
            for number in range(games)
        ],
        min_probability=min_probability,
        batch=batch,
    )
    played = []
    for number, end in enumerate(ends):
        actions = tuple(end.history())
        ours = range(_first_ply(book), len(actions), 2)
        left = next((ply for ply in ours if actions[:ply] not in play.memorized), None)
        score = _score(end, book.side)
        played.append(MatchGame(number, tuple(end.moves()), score, end.ending() or "", left))
    return MatchResult(book, tuple(played))


def _first_ply(book: Book) -> int:
    """Return the ply at which the book's side is first to move."""
    return 0 if book.start.turn == book.side else 1


def _start(book: Book, max_plies: int) -> ChessState:
    """Return the start of a match."""
    fen = book.start.fen(en_passant="fen")
    return ChessGame({**RULES_OF_CHESS, "fen": fen, "max_plies": max_plies}).new_initial_state()


def memorized_rows(book: Book) -> dict[tuple[int, ...], dict[int, float]]:
    """Return {action: probability} by history, as actions, for those that the book's own moves reach."""
    rows: dict[tuple[int, ...], dict[int, float]] = {}
    for position in sorted(book.positions, key=lambda position: len(position.history)):
        history = tuple(map(action_of, position.history))
        earlier = len(history) - 2
        if earlier < _first_ply(book) or history[:earlier] in rows:
            played = (entry for entry in position.moves if entry.probability > 0.0)
            rows[history] = {action_of(entry.move): entry.probability for entry in played}
    return rows


def _score(state: ChessState, side: chess.Color) -> float:
    """Return the score of a side in a finished game."""
    return float(state.returns()[0 if side == chess.WHITE else 1])


@public
def write_match_pgn(
    result: MatchResult, path: checks.FilePath, headers: Mapping[str, str] | None = None
) -> None:
    """Write the games of a match as PGN, replacing `path` atomically.

    A comment marks where a game leaves the book. The same match gives the same bytes: no date is written
    unless `headers` has one.

    Args:
      result: the match.
      path: the file.
      headers: PGN tags of all games. Round and Termination are set here, as are those that `write_pgn` sets.

    Raises:
      ValueError: headers that `write_pgn` would refuse.
      OSError: as `atomic_write`.
    """
    with atomic_write(path) as file:
        for played in result.games:
            game = chess.pgn.Game()
            game.setup(result.book.start)
            set_headers(game, headers, ("Round", "Termination"))
            game.headers["Round"] = str(played.number + 1)
            game.headers["Termination"] = played.ending
            white = played.score if result.book.side == chess.WHITE else 1.0 - played.score
            game.headers["Result"] = RESULTS[white]
            node: chess.pgn.GameNode = game
            for ply, move in enumerate(played.moves):
                if ply == played.left:
                    node.comment = "out of book"
                node = node.add_variation(move)
            file.write(f"{game}\n\n")


# -- start positions ---


@dataclasses.dataclass(frozen=True)
class Opening:
    """A start position.

    Attributes:
      board: the position, with the moves that lead to it.
      games: number of games that went on from there.
      score: White's mean score in them.
    """

    board: chess.Board
    games: int
    score: float

    def __str__(self) -> str:
        """Return the score and the number of games, in words."""
        return f"White scored {points(self.score)} points in 100 games, by {self.games} of them"


def openings_near(matches: Iterable[MatchResult], value: float) -> list[Opening]:
    """Return positions after games' books in which White scored within 0.1 of a value.

    A position counts once, with the games of all matches, if there are four or more; the nearest score comes
    first, and of equals the one with more games.

    Args:
      matches: the matches.
      value: White's score.
    """
    found: dict[str, tuple[chess.Board, list[float]]] = {}
    for match in matches:
        for game in match.games:
            if game.left is not None:
                board = match.book.start.copy()
                for move in game.exit:
                    board.push(move)
                white = game.score if match.book.side == chess.WHITE else 1.0 - game.score
                found.setdefault(board.epd(), (board, []))[1].append(white)
    openings = [Opening(board, len(scores), sum(scores) / len(scores)) for board, scores in found.values()]
    near = [each for each in openings if each.games >= _LEAST_GAMES and abs(each.score - value) <= _NEAR]
    return sorted(near, key=lambda each: (abs(each.score - value), -each.games, each.board.epd()))


def write_openings(openings: Sequence[Opening], folder: str | os.PathLike[str]) -> None:
    """Write openings.epd and openings.pgn, one position or game each, for match programs."""
    with atomic_write(pathlib.Path(folder) / "openings.epd") as file:
        for each in openings:
            file.write(f"{each.board.epd(c0=str(each))}\n")
    with atomic_write(pathlib.Path(folder) / "openings.pgn") as file:
        for number, each in enumerate(openings, start=1):
            game = chess.pgn.Game.from_board(each.board)
            set_headers(game, {"Event": "Start positions", "Round": str(number)})
            game.end().comment = str(each)
            file.write(pgn_text(game))
