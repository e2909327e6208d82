"""Descriptions of books for people: points in 100 games, guesses, opponents and openings, in whole words.

Utilities are points of the book's side in a game, in [0, 1]. People count points, so a gain of 0.17 is shown
as "17 more points in 100 games". Opponents that are specs in flags and files are described; neither the spec
nor a file that it names is shown.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import pathlib
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import chess
import chess.engine

from precomp_games._support.checks import counted, plain_text
from precomp_games.chess.data.book import points as points
from precomp_games.chess.model.engine_policies import ANSWERS
from precomp_games.chess.model.played import Person, ReplyGames
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.policies.specs import parsed_spec, policies_in

_LIMIT = re.compile(r"(nodes|depth|movetime)=(\d+)")
_DEEP = 5  # largest number of nested policies in a description
_MOVES = 5  # of a book, for which the number of games still in it is shown


def more_points(gain: float) -> str:
    """Describe a gain, such as "17 more points in 100 games"."""
    return f"{points(abs(gain))} {'more' if gain >= 0.0 else 'fewer'} points in 100 games"


def signed_points(gain: float) -> str:
    """Return a gain as points in 100 games, such as "+1.4"."""
    return ("+" if gain > 0.0 else "") + points(gain)


def parts_words(position: float, clock: float | None) -> str:
    """Describe a book's gain: by position, and, if known, by the time that it saves."""
    if clock is None:
        return more_points(position)
    return f"{signed_points(position)} points in 100 games by position, {signed_points(clock)} on the clock"


def range_words(ends: Sequence[float]) -> str:
    """Describe a range of scores, in points of 100 games."""
    return f"{points(ends[0])} to {points(ends[1])}"


SEEN = "seen in {} of their games"
"""Text at a reply that a person's games have."""


def worth_words(title: str, position: float, clock: float | None, size: int) -> str:
    """Describe a book's gain against an opponent, and its size."""
    return f"Against {title or 'the model'}: {parts_words(position, clock)}, for {counted(size, 'position')}"


def coverage_words(shares: Mapping[int, float]) -> str:
    """Describe how many of 100 games are still in the book at some of our moves; "" if unknown, or none.

    Args:
      shares: of games, by the move's number.
    """
    parts = [(move, f"{100.0 * share:.0f}") for move, share in shares.items() if share >= 0.005][1:]
    parts = parts[:: -max(1, math.ceil(len(parts) / _MOVES))][::-1]  # the last one among them
    each = [f"{games} at move {move}" for move, games in parts]
    if each:
        each[0] = each[0].replace(" at", " are still in the book at", 1)
    *others, last = each or [""]
    return f"of 100 games {', '.join(others)}{' and ' if others else ''}{last}" if last else ""


def unseen_words(positions: int, size: int, gain: float, whole: float, unseen: str = "guesses") -> str:
    """Describe how much of a book rests on unseen replies: its positions, and their part of the gain."""
    if not positions:
        return f"none of {size} positions rests on {unseen}"
    text = f"{positions} of {size} positions {'rests' if positions == 1 else 'rest'} on {unseen}"
    return text if whole <= 0.0 else f"{text}, with {share_words(gain / whole)} of what the book adds"


def share_words(share: float) -> str:
    """Return a share such as "25%"; "all" or "none" as well where other positions cost, or add more."""
    return "none" if share < 0.005 else "all" if share >= 0.995 else f"{share:.0%}"


def versus_words(side: str, opponent: str, person: Person | None) -> str:
    """Describe the opponent of a book, its color, and the number and years of its games."""
    text = f"{opponent or 'The modeled opponent'} with {'Black' if side == 'white' else 'White'}"
    if person is None:
        return text
    years = dict.fromkeys(year for year in (person.first, person.last) if year is not None)
    when = f", {' to '.join(map(str, years))}" if years else ""
    return f"{text}: {counted(person.games, 'game', ',')}{when}"


def why_words(reach: float, worth: float, others: Sequence[tuple[str, float]]) -> str:
    """Explain why a position is worth learning: its reach, and the cost of forgetting it.

    Args:
      reach: its probability.
      worth: the cost of forgetting it.
      others: other moves that could be learned there, with their losses, the best first.
    """
    text = f"It comes up in {often(reach)}. Forgetting it costs {points(worth)} points in 100 games."
    if others:
        san, loss = others[0]
        text += f" {san} instead would {'cost' if loss >= 0.0 else 'bring'} {points(abs(loss))}."
    return text


def often(share: float, what: str = "games") -> str:
    """Describe a frequency, such as "12 of 100 games" or "1 of 250 games"."""
    if share >= 0.995:
        return "every game" if what == "games" else f"nearly every {what.removesuffix('s')}"
    if share >= 0.095:
        return f"{100.0 * share:.0f} of 100 {what}"
    return f"1 of {1.0 / share:,.0f} {what}" if share >= 1e-6 else f"next to no {what.removesuffix('s')}"


def pawns_text(score: chess.engine.PovScore) -> str:
    """Return an evaluation from White's viewpoint: pawns, or #3 and #-3 for mates."""
    white = score.white()
    pawns = white.score()
    return f"#{white.mate()}" if pawns is None else f"{pawns / 100:.2f}"


@dataclasses.dataclass(frozen=True)
class OpponentWords:
    """The opponent of a preparation in words.

    Attributes:
      settings: Of the preparation.
      engine: The identity of its engine.
    """

    settings: PreparationSettings
    engine: str

    @property
    def play(self) -> str:
        """The opponent's play, as short as in a list of settings; a spec as it is."""
        settings = self.settings
        if settings.opponent:
            return plain_text(settings.opponent)
        if settings.opponent_plays in ANSWERS:
            in_games = " in games that are played to it" if settings.opponent_plays == "game" else ""
            return f"the move it answers{in_games}"
        each = ", ".join(f"{r:g}" for r in settings.opponent_temperatures_cp)
        shares = ", ".join(f"{w:g}" for w in settings.opponent_weights)
        drawn = f", drawn as {shares}" if shares else ", drawn once per game" if "," in each else ""
        return f"r = {each} cp{drawn}"

    @property
    def name(self) -> str:
        """The opponent for programs: an engine, its limit, and its play; or the spec."""
        if self.settings.opponent:
            return self.play
        return plain_text(f"{self.engine} ({self.settings.opponent_limit}, {self.play})")

    @property
    def description(self) -> str:
        """The opponent for terminals: a spec is described."""
        return self.source if self.settings.opponent else self.name

    @property
    def title(self) -> str:
        """The opponent in few words: a person's name, an engine's, or a kind of opponent."""
        if self.settings.opponent:
            return plain_text(_title(self._spec)) or "a model opponent"
        return plain_text(f"{self.engine} ({limit_words(str(self.settings.opponent_limit))})")

    @property
    def source(self) -> str:
        """Source of its replies."""
        settings = self.settings
        if settings.opponent:
            return plain_text(_described(self._spec, self.engine, _DEEP))
        who = f"{self.engine}, {limit_words(str(settings.opponent_limit))}"
        if settings.opponent_plays in ANSWERS:
            return plain_text(f"{who}: the move that it answers")
        each = " or ".join(f"{r:g}" for r in settings.opponent_temperatures_cp)
        drawn = ", drawn for each game" if " or " in each else ""
        if settings.opponent_weights:
            drawn += f" as {' to '.join(f'{weight:g}' for weight in settings.opponent_weights)}"
        best = f"one of its {settings.top_k} best moves, the better the likelier"
        return plain_text(f"{who}: {best} (r = {each} cp{drawn})")

    @property
    def replies(self) -> str:
        """Source of its replies, in few words."""
        if self._behind is None or self._spec["name"] != "games":
            return self.source
        others = ["games of others"] * ("games" in self._behind)
        others += ["people of their rating"] * self._people + ["engines"] * self._thinks
        less = " and ".join(others) or "another model"
        return plain_text(f"{_whose(self._spec)}; where they say little, {less}")

    @property
    def guess(self) -> str:
        """Reason why a reply that was never seen is expected."""
        if self._people:
            return "not in their games; people of their rating play it"
        if self._behind is not None and "games" in self._behind:
            return "a guess: never seen, others play it" + " or an engine thinks so" * self._thinks
        return "a guess: never seen" + ", an engine thinks so" * self._thinks

    @property
    def unseen(self) -> str:
        """Name of such replies: guesses, unless a model of people gives their probabilities."""
        return "replies not in their games" if self._people else "guesses"

    def seen(self, found: ReplyGames | None) -> str:
        """State in how many of a person's games a reply was seen; or why it is expected."""
        return SEEN.format(found.count) if found is not None else self.guess

    @property
    def _spec(self) -> dict[str, Any]:
        return _parsed(self.settings.opponent) if self.settings.opponent else {}

    @property
    def _behind(self) -> set[str] | None:
        """Names of the policies behind a person's games; None if there are none, or no games."""
        spec = self._spec
        return set(policies_in(spec["prior"])) if "prior" in spec else None

    @property
    def _thinks(self) -> bool:
        return self._behind is not None and "uci" in self._behind

    @property
    def _people(self) -> bool:
        return self._behind is not None and "human" in self._behind


def evaluation_words(settings: PreparationSettings, *, corrected: bool) -> str:
    """Describe the evaluation of positions where lines end."""
    ends = {"calibrated": "an evaluation that was fitted to games", "rollouts": "games that are played out"}
    ends["people"] = f"what people's games score: {settings.speed}, about {settings.rating:.0f}"
    by = ends.get(settings.evaluation, "the analyst's evaluation")
    return f"{by}, corrected by games" if corrected else by


def limit_words(limit: str) -> str:
    """Describe a limit of searches, such as "1,000 nodes a move" for nodes=1000."""
    match = _LIMIT.fullmatch(limit)
    units = {"nodes": "nodes a move", "depth": "plies deep", "movetime": "ms a move"}
    return limit if match is None else f"{int(match[2]):,} {units[match[1]]}"


# -- specs -------------------------------------------------------------------------------------------------


def _parsed(spec: Any) -> dict[str, Any]:
    """Return a spec's name and arguments; {} if it is not a spec."""
    with contextlib.suppress(ValueError):
        return parsed_spec(spec)
    return {}


def _parts(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the policies of a mixture."""
    found = (_parsed(value) for name, value in spec.items() if name not in ("name", "weights", "per"))
    return [each for each in found if each]


def _title(spec: Mapping[str, Any]) -> str:
    name = spec.get("name")
    if name == "games":
        return str(spec.get("player", "everybody"))
    if name == "noisy":
        return _title(_parsed(spec.get("policy")))
    if name == "mixture":
        return " or ".join(dict.fromkeys(filter(None, map(_title, _parts(spec)))))
    if name == "human":
        return f"players rated about {_rating(spec)}"
    titles = {"polyglot": "a book's player", "uniform": "anybody", "uci": "an engine"}
    return titles.get(str(name), "")


def _whose(spec: Mapping[str, Any]) -> str:
    return f"{spec['player']}'s games" if "player" in spec else "games of everybody"


def _described(spec: Mapping[str, Any], engine: str, deep: int) -> str:
    """Describe a policy."""
    name = spec.get("name")
    if not deep:
        return "another model"
    if name == "games":
        if "prior" not in spec:
            return _whose(spec)
        behind = _described(_parsed(spec["prior"]), engine, deep - 1)
        return f"{_whose(spec)}; where they say little, {behind}"
    if name == "noisy":
        inside = _described(_parsed(spec.get("policy")), engine, deep - 1)
        return f"{inside}, and any legal move in {_percent(spec.get('epsilon', 0.1))} of cases"
    if name == "mixture":
        parts, which = _parts(spec), "each move" if spec.get("per") == "move" else "each game"
        engines = [part for part in parts if part.get("name") == "uci" and "engine" not in part]
        several = engines if len(engines) > 1 else []
        texts = [_engines_words(several, engine)] if several else []
        texts += [_described(part, engine, deep - 1) for part in parts if part not in several]
        return f"one of these for {which}: {'; '.join(texts)}"
    if name == "uci":
        return _engine_words(spec, engine)
    if name == "human":
        return f"people rated about {_rating(spec)}, by a network of people's moves"
    known = {"polyglot": "an opening book", "uniform": "any legal move, each as likely"}
    return known.get(str(name), "a model of its own")


def _limits(spec: Mapping[str, Any]) -> list[str]:
    """Describe the limits of an engine's search."""
    return [limit_words(f"{name}={spec[name]}") for name in ("nodes", "depth") if name in spec]


def _rating(spec: Mapping[str, Any]) -> str:
    """Return the rating of people in a spec, which may come from anywhere."""
    if "engine" in spec:
        return "as an engine says"
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return f"{float(spec.get('rating', 1500.0)):.0f}"
    return "unknown"


def _engine_words(spec: Mapping[str, Any], engine: str) -> str:
    who = "an engine of its own" if "engine" in spec else engine or "an engine"
    who = ", ".join([who, *_limits(spec)])
    if spec.get("plays") in ("bestmove", "game"):
        return f"{who}, the move that it answers"
    return f"{who}, one of its best moves, the better the likelier" + (
        f" (r = {spec['r']} cp)" if "r" in spec else ""
    )


def _engines_words(specs: Sequence[Mapping[str, Any]], engine: str) -> str:
    """Describe several engines that differ in their limits and temperatures."""
    limits = dict.fromkeys(limit for spec in specs for limit in _limits(spec))
    drawn = dict.fromkeys(str(spec["r"]) for spec in specs if "r" in spec)
    who = ", ".join(filter(None, (engine or "an engine", " or ".join(limits))))
    chosen = f" (r = {', '.join(drawn)} cp)" if drawn else ""
    return f"{len(specs)} engines, {who}, each plays one of its best moves, the better the likelier{chosen}"


def _percent(share: Any) -> str:
    with contextlib.suppress(TypeError, ValueError):
        return f"{100.0 * float(share):.3g}%"
    return "some"


# -- openings ----------------------------------------------------------------------------------------------

_MOVE = 4  # characters; no opening has a promotion


def opening_name(board: chess.Board) -> str | None:
    """Return code and name of a position's opening, such as "B33 Sicilian Defense: Lasker-Pelikan Variation".

    The source is lichess's list of names (vendor/chess-openings, CC0), whatever the order of moves.

    Return None if the list has no name for it: then the game's opening is that of the last position with one.
    """
    return _openings().get(_position(board))


def opening_of(start: chess.Board, history: Sequence[chess.Move]) -> str:
    """Return the opening of a line: that of its last position with a name; "" if none has one."""
    board, found = start.copy(stack=False), opening_name(start)
    for move in history:
        board.push(move)
        found = opening_name(board) or found
    return found or ""


@functools.cache
def _openings() -> Mapping[Hashable, str]:
    """Read the list of openings; of several entries for a position, the first one by its moves counts."""
    path = pathlib.Path(__file__).parent / "vendor" / "chess-openings" / "openings.tsv"
    board, names = chess.Board(), dict[Hashable, str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        code, shared, moves, name = line.split("\t")
        while len(board.move_stack) > int(shared):
            board.pop()
        for first in range(0, len(moves), _MOVE):
            board.push(chess.Move.from_uci(moves[first : first + _MOVE]))
        names.setdefault(_position(board), f"{code} {name}")
    return names


def _position(board: chess.Board) -> Hashable:
    """Return a key of pieces and side to move: enough to distinguish openings, and faster than an EPD."""
    pieces = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    return *pieces, board.occupied_co[chess.WHITE], board.turn
