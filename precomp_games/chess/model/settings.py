"""Settings of a preparation: the game, the opponent, and the leaf values.

The opponent plays Softmax(cp / r) of a shallow search, or its engine's move, or the policy of a spec, such
as the games of a person (`opponents.py`). Our side can memorize the moves that a deep search, the analyst's,
recommends. Positions after the book are valued according to the kind of evaluation.

Source: `precomputation`, section 5 and appendix, "Experimental Details": k = 2 moves a position, L = 100
half-moves, the preparing side's policies at r = 1e-6.

Deviations: node limits in place of move times, so that results reproduce; positions are searched without
their history, and no draw by repetition or by the fifty-move rule ends a game before L (`ChessGame`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import chess
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.results import Shown
from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.engines.searches import MAX_MULTIPV, Multipv, SearchLimit, SomeSamples
from precomp_games.chess.game import RULES_OF_CHESS, Plies, check_fen
from precomp_games.chess.model.calibration import is_shipped
from precomp_games.chess.model.engine_policies import SAMPLES, Plays, Scale, check_opponents
from precomp_games.policies.rows import LeastProbability
from precomp_games.policies.specs import check_spec, policies_in, touched
from precomp_games.tree.expansion.options import Price

EXPECTED_SCORE = "Expected score"
"""Name of a book's score if games determine it."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A kind of leaf values, with the name of a book's score by it.

    Only games give an expected score: roll-outs, and the matches that correct a fitted evaluation. Any other
    value of a position is an opinion.

    Attributes:
      score_name: name of a book's score.
      owner: whose opinion it is, in words; "" if it is none.
      fitted: whether it was fitted to games by the rules of chess, which more games may then correct.
      own: whether a file may contain another fit, `calibration`; "" is a shipped one.
      not_games: how scores by it differ from results of games, in words; a line or two.
    """

    score_name: str = "Analyst's score"
    owner: str = "the analyst's evaluations"
    fitted: bool = False
    own: bool = False
    not_games: str = (
        'not results of games, which\ncome out lower: see "What games score" in docs/chess_measured.md.'
    )

    def note(self) -> str:
        """Return a line on what such scores are not; "" for expected scores."""
        if not self.owner:
            return ""
        return f"Scores are {self.owner} where lines leave the book, {self.not_games}\n"


_SCORE = Evaluation()
EVALUATIONS: Mapping[str, Evaluation] = {
    "linear": _SCORE,
    "threshold": _SCORE,
    "wdl": _SCORE,
    "calibrated": Evaluation("Fitted score", "a fitted evaluation's", fitted=True, own=True),
    "people": Evaluation(
        "People's score",
        "what people's rated games score",
        own=True,
        not_games="by a fit to the\nanalyst's evaluations: no games were played.",
    ),
    "rollouts": Evaluation(EXPECTED_SCORE, ""),
}
"""The kinds by name: see `score_utility`, `CalibratedUtility`, `PeopleUtility` and `RolloutValues`."""

_ANALYST_LIMIT = SearchLimit(nodes=5000)
_OPPONENT_LIMIT = SearchLimit(nodes=1000)
_R, _R_WEIGHTS = {"flag": "r"}, {"flag": "r_weights"}  # names in commands


@public
@dataclasses.dataclass(frozen=True)
class PreparationSettings(Shown):
    """Settings of a preparation: the game, the opponent, and the leaf values.

    An attribute's description is also the help of its flag, if commands have one.

    Attributes:
      player: Whose book, 0 White, 1 Black.
      penalty: Memory penalty lambda: utility in [0, 1] that a position costs.
      opponent_temperature_cp: Randomness of the opponent, in centipawns; 0.1 is predictable, 100 costs a
        pawn. Several, such as 5,10,40: one of these opponents is drawn for the whole game, and the book is
        for all of them.
      own_temperature_cp: Randomness of the book and of our own play, in centipawns.
      analyst_limit: Limit of a search for a move of the book.
      opponent_limit: Limit of a search for a move of the opponent.
      own_limit: Limit of a search for a move of our own play out of book. Default: the opponent's.
      check_limit: Limit of a second search of the positions of a book with a choice of moves: a move stays if
        this search finds it within the window. Default: none.
      own_repeats: Whether our own play may repeat positions while it is ahead: then it depends on the
        position alone; otherwise it remembers the game, see `EnginePolicy`.
      top_k: Moves considered in a position (MultiPV).
      opponent_plays: How the opponent chooses its move: at random by its scores (softmax), the move that its
        engine answers (bestmove), or what its engine answers in games that are played to it as match programs
        do (game). The last two use neither a temperature nor a number of moves.
      opponent_samples: For an engine that draws its moves, by its options or under a clock: number of
        searches of each position.
      menu: Number of the analyst's best moves among which a book may choose. 1: the best one, and of several
        best moves one. 0: all of several best moves, as in the paper, which must all be known.
      menu_window_cp: How much worse than the best move another one may be, in centipawns.
      max_plies: Half-moves until a draw is declared.
      fen: Start position. Default: the usual one.
      evaluation: Values of positions after the book: linear in centipawns, won from a threshold on, by the
        engine's win-draw-loss model, the mean of games that both sides' engines play on, or a function of the
        analyst's score that was fitted to such games (calibrated), or to people's rated games (people).
      scale_cp: Centipawns of a sure win, for linear and threshold.
      rollout_epsilon: Largest loss of value by roll-outs, see `RolloutValues`.
      rollout_delta: Probability of a larger loss.
      seed: Seed of the games that determine values of positions.
      min_probability: Less likely moves are pruned.
      calibration: For calibrated: a file of `precomp-games calibrate`, or a shipped fit: people (to
        games of grandmasters, by 5000 nodes), people_20000 (by 20000 nodes), engines (to games of Stockfish
        15.1 under a clock, by 50000 nodes). Default: the fit for Stockfish 15.1 with 1000 and 5000 nodes.
        For people: a file of `precomp-games calibrate --games`. Default: the shipped fit.
      speed: For people: speed of the games.
      rating: For people: the mean rating of both sides.
      opponent_weights: Relative frequencies of several opponents, such as 1,2,1. Default: equal.
      opponent: Another opponent than the engine's softmax, by name: a person's games, such as
        games(file=karpov.pgn,player=Karpov Anatoli,fit=rolling), a book, polyglot(file=book.bin), an
        engine, uci(r=40,top_k=8), or mixture(a=...,b=...) of them; see docs/opponents.md. The opponent's
        limit and number of moves are then those of our own play out of book.
      distrust: Contamination of the opponent's model: with this probability, at each of its turns, the
        opponent plays the reply that is worst for us among the model's. Positions with many games of a person
        are distrusted less: by `distrust` alpha / (n + alpha) with n games (`CountsPolicy`).
      price: Unit of the penalty and of a budget: each history (infosets), or each position, however it is
        reached (positions). A position then has one move: of several best ones, the first that the analyst
        reports.
      trusted: Whether `opponent` and `calibration` may name files and engines, which are then opened and
        run (see `make_policy`). False for settings that come from a file; `as_dict` leaves it out.
      files: Data of these files (`ModelFiles`), if `Preparation.read` found them in the folder; used if
        settings are not trusted. `as_dict` leaves it out as well.
    """

    player: checks.Player = 0
    penalty: checks.PositiveFloat = 1e-4
    opponent_temperature_cp: float | Sequence[float] = dataclasses.field(default=10.0, metadata=_R)
    own_temperature_cp: checks.PositiveFloat = 1e-6
    analyst_limit: SearchLimit = _ANALYST_LIMIT
    opponent_limit: SearchLimit = _OPPONENT_LIMIT
    own_limit: SearchLimit | None = None
    check_limit: SearchLimit | None = None
    own_repeats: bool = True
    top_k: Multipv = 2
    opponent_plays: Plays = "softmax"
    opponent_samples: SomeSamples = SAMPLES
    menu: Annotated[int, checks.Ge(0), checks.Le(MAX_MULTIPV)] = 0
    menu_window_cp: checks.NonNegativeFloat = 100.0
    max_plies: Plies = 100
    fen: str = ""
    evaluation: Annotated[str, checks.one_of(tuple(EVALUATIONS))] = "linear"
    scale_cp: Scale = 400.0
    rollout_epsilon: checks.PositiveFloat = 0.2
    rollout_delta: Annotated[float, checks.Gt(0.0), checks.Lt(1.0)] = 0.05
    seed: checks.NonNegativeInt = 0
    min_probability: LeastProbability = 1e-9
    calibration: str = ""
    speed: Annotated[str, checks.one_of(SPEEDS)] = "blitz"
    rating: Annotated[float, checks.Ge(0.0), checks.Le(5000.0)] = 1500.0
    opponent_weights: Sequence[float] = dataclasses.field(default=(), metadata=_R_WEIGHTS)
    opponent: str = ""
    distrust: Annotated[float, checks.Ge(0.0), checks.Le(1.0)] = 0.0
    price: Price = "infosets"
    trusted: bool = False
    files: Any = None

    def __post_init__(self) -> None:
        """Check the rest, so that a wrong value is reported before an engine is started.

        Raises:
          ValueError: the message states the setting, the expected and the given value.
        """
        temperatures, weights = check_opponents(
            self.opponent_temperature_cp, self.opponent_weights, self.opponent_plays
        )
        object.__setattr__(self, "opponent_temperature_cp", temperatures)
        object.__setattr__(self, "opponent_weights", weights)
        check_fen(self.fen)
        if self.opponent != "":
            check_spec(self.opponent, "opponent")

    def game(self) -> pyspiel.Game:
        """Return the base game."""
        return pyspiel.load_game("python_chess", {"fen": self.fen, "max_plies": self.max_plies})

    def played_game(self) -> pyspiel.Game:
        """Return the same game by the rules of chess: it is scored, and a book sees its first `max_plies`."""
        return pyspiel.load_game("python_chess", {**RULES_OF_CHESS, "fen": self.fen})

    @property
    def side(self) -> chess.Color:
        """Side of the book."""
        return chess.WHITE if self.player == 0 else chess.BLACK

    @property
    def kind(self) -> Evaluation:
        """Kind of evaluation."""
        return EVALUATIONS[self.evaluation]

    @property
    def multipv(self) -> int:
        """Lines of the analyst's searches: one search of a position serves its menu and its evaluation."""
        return max(self.top_k, self.menu)

    @property
    def opponent_temperatures_cp(self) -> tuple[float, ...]:
        """The r of each opponent, also if there is only one."""
        given = self.opponent_temperature_cp
        return tuple(given) if isinstance(given, Sequence) else (given,)

    @property
    def of_people(self) -> bool:
        """Return whether the opponent is people, by networks, alone or behind a person's games."""
        return bool(self.opponent) and "human" in policies_in(self.opponent)

    @property
    def touches(self) -> dict[str, str]:
        """Values that name files or engines, by field; these are opened and run if settings are trusted."""
        shipped = is_shipped(self.calibration) if self.kind.fitted else not self.calibration
        own = self.kind.own and not shipped
        named = {
            "opponent": touched(self.opponent) if self.opponent else "",
            "calibration": self.calibration if own else "",
        }
        return {name: each for name, each in named.items() if each}

    def as_dict(self) -> dict[str, Any]:
        """Return settings for JSON, limits as text; readers decide whether to trust them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del values["trusted"], values["files"]
        return {k: str(v) if isinstance(v, SearchLimit) else v for k, v in values.items()}
