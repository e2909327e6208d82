"""What is said of a book to people: points in 100 games, guesses, and opponents, in whole words.

Utilities are points of the book's side in a game, in [0, 1]. People count points, so a gain of 0.17 is told
as "17 more points in 100 games". Opponents that stand in flags and files as specs are described; neither the
spec nor a file that it names is shown.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import chess.engine

from precomp_games._support.messages import counted, plain_text
from precomp_games.chess.books.book import points as points
from precomp_games.chess.opponents.played import Person
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.policies.specs import parsed_spec

_LIMIT = re.compile(r"(nodes|depth|movetime)=(\d+)")
_DEEP = 5  # policies behind each other that are told
_ENGINES = ("uci", "family")

GLOSSARY: Mapping[str, str] = {
    "point": "A win is 1, a draw ½, a loss 0. Points are those of the side whose book it is, in 100 games.",
    "comes up": "In how many of 100 games a position stands on the board: the book is followed on our side, "
    "and the opponent plays as it was modeled.",
    "forgetting it costs": "How many points in 100 games are lost if this position, and all that follows it "
    "in the book, is not known; less what learning them was said to cost.",
    "expected": "Points by games that both sides' play was tried in, with the standard error after ±.",
    "fitted, the analyst's": "Points by an evaluation of where lines end, and not by games. Games usually "
    "give less.",
    "seen": "In how many of the opponent's games the reply was played in this position, however it came up.",
    "a guess": "A reply that was never seen in the opponent's games. A position rests on guesses if one of "
    "the replies before it is a guess.",
    "evaluation": "The engine's that chose the book's move, in pawns for White: +0.5 is half a pawn more for "
    "White, #3 is mate in three.",
    "position": "What is on the board after a line of moves. One that several lines lead to is learned once, "
    "and counted once for each of them.",
}
"""What words and units mean, once for all pages."""


def more_points(gain: float) -> str:
    """What a gain is worth, such as "17 more points in 100 games"."""
    return f"{points(abs(gain))} {'more' if gain >= 0.0 else 'fewer'} points in 100 games"


def signed_points(gain: float) -> str:
    """A gain as points in 100 games, such as "+1.4"."""
    return ("+" if gain > 0.0 else "") + points(gain)


def range_words(ends: Sequence[float]) -> str:
    """From where to where scores may lie, in points of 100 games."""
    return f"{points(ends[0])} to {points(ends[1])}"


SEEN = "seen in {} of their games"
"""Of a person's reply that some games have."""


def guesses_words(positions: int, size: int, gain: float, whole: float) -> str:
    """How much of a book rests on guesses: so many of its positions, and so much of what they add."""
    if not positions:
        return f"none of {size} positions rests on guesses"
    text = f"{positions} of {size} positions {'rests' if positions == 1 else 'rest'} on guesses"
    return text if whole <= 0.0 else f"{text}, with {max(0.0, gain / whole):.0%} of what the book adds"


def versus_words(side: str, opponent: str, person: Person | None) -> str:
    """Who the opponent of a book is, with which color, and by how many games it is known."""
    other = "Black" if side == "white" else "White"
    text = f"{opponent or 'The modeled opponent'} with {other}"
    if person is None:
        return text
    text += f": {counted(person.games, 'game', ',')}"
    if person.first is None:
        return text
    return text + (
        f", {person.first}" if person.first == person.last else f", {person.first} to {person.last}"
    )


def why_words(reach: float, worth: float, others: Sequence[tuple[str, float]]) -> str:
    """Why a position is worth learning: how often it comes up, and what forgetting it costs.

    Args:
      reach: the probability that it comes up.
      worth: what forgetting it costs.
      others: what else could be learned there, with what that would cost, the best first.
    """
    text = f"It comes up in {often(reach)}. Forgetting it costs {points(worth)} points in 100 games."
    if others:
        san, loss = others[0]
        text += f" {san} instead would {'cost' if loss >= 0.0 else 'bring'} {points(abs(loss))}."
    return text


def often(share: float) -> str:
    """How often something comes up, such as "12 of 100 games" or "1 of 250 games"."""
    if share >= 0.995:
        return "every game"
    if share >= 0.095:
        return f"{100.0 * share:.0f} of 100 games"
    return f"1 of {1.0 / share:,.0f} games" if share >= 1e-6 else "next to no game"


def pawns_text(score: chess.engine.PovScore) -> str:
    """An evaluation from White's viewpoint: pawns, or #3 and #-3 for mates."""
    white = score.white()
    pawns = white.score()
    return f"#{white.mate()}" if pawns is None else f"{pawns / 100:.2f}"


def opponent_title(settings: PreparationSettings, engine: str) -> str:
    """Who the opponent is, in few words: a person's name, an engine's, or what kind of opponent it is."""
    if settings.opponent:
        return plain_text(_title(_parsed(settings.opponent))) or "a model opponent"
    return plain_text(f"{engine} ({limit_words(str(settings.opponent_limit))})")


def replies_words(settings: PreparationSettings, engine: str) -> str:
    """Where the opponent's replies come from, in few words."""
    spec = _parsed(settings.opponent) if settings.opponent else {}
    if spec.get("name") != "games" or "prior" not in spec:
        return opponent_words(settings, engine)
    behind = set(_names(_parsed(spec["prior"]), _DEEP))
    others = ["games of others"] * ("games" in behind) + ["engines"] * bool(behind & {*_ENGINES})
    whose = f"{spec['player']}'s games" if "player" in spec else "games of everybody"
    return plain_text(f"{whose}; where they say little, {' and '.join(others) or 'another model'}")


def opponent_words(settings: PreparationSettings, engine: str) -> str:
    """Where the opponent's replies come from."""
    if settings.opponent:
        return plain_text(_described(_parsed(settings.opponent), engine, _DEEP))
    who = f"{engine}, {limit_words(str(settings.opponent_limit))}"
    if settings.opponent_plays in ("bestmove", "game"):
        return f"{who}: the move that it answers"
    each = " or ".join(f"{r:g}" for r in settings.opponent_temperatures_cp)
    drawn = ", drawn for each game" if " or " in each else ""
    if settings.opponent_weights:
        drawn += f" as {' to '.join(f'{weight:g}' for weight in settings.opponent_weights)}"
    return f"{who}: one of its {settings.top_k} best moves, the better the likelier (r = {each} cp{drawn})"


def evaluation_words(settings: PreparationSettings, *, corrected: bool) -> str:
    """What says what positions are worth where lines end."""
    fitted = "an evaluation that was fitted to games"
    ends = {"calibrated": fitted, "rollouts": "games that are played out"}
    by = ends.get(settings.evaluation, "the analyst's evaluation")
    return f"{by}, corrected by games" if corrected else by


def guess_words(settings: PreparationSettings) -> str:
    """Why a reply that was never seen is expected."""
    prior = _parsed(settings.opponent).get("prior") if settings.opponent else None
    behind = set(_names(_parsed(prior), _DEEP)) if prior is not None else set()
    if "games" in behind:
        return "a guess: never seen, others play it" + (
            " or an engine thinks so" if behind & {*_ENGINES} else ""
        )
    return "a guess: never seen" + (", an engine thinks so" if behind & {*_ENGINES} else "")


def limit_words(limit: str) -> str:
    """A limit of searches, such as "1,000 nodes a move" for nodes=1000."""
    match = _LIMIT.fullmatch(limit)
    if match is None:
        return limit
    number, units = int(match[2]), {"nodes": "nodes", "depth": "plies deep", "movetime": "ms"}
    return f"{number:,} {units[match[1]]}{'' if match[1] == 'depth' else ' a move'}"


# -- specs -------------------------------------------------------------------------------------------------


def _parsed(spec: Any) -> dict[str, Any]:
    """A spec's name and arguments; none of what is no spec."""
    with contextlib.suppress(ValueError):
        return parsed_spec(spec)
    return {}


def _parts(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The policies of a mixture."""
    found = (_parsed(value) for name, value in spec.items() if name not in ("name", "weights", "per"))
    return [each for each in found if each]


def _names(spec: Mapping[str, Any], deep: int) -> list[str]:
    """The names of a policy and of those that are behind it."""
    inside = [part for part in _parts(spec) if part] if deep else []
    return [str(spec.get("name", "")), *(name for part in inside for name in _names(part, deep - 1))]


def _title(spec: Mapping[str, Any]) -> str:
    name = spec.get("name")
    if name == "games":
        return str(spec.get("player", "everybody"))
    if name == "noisy":
        return _title(_parsed(spec.get("policy")))
    if name == "mixture":
        titles = dict.fromkeys(filter(None, map(_title, _parts(spec))))
        return " or ".join(titles)
    titles_by_name = {
        "polyglot": "a book's player",
        "explorer": "the players of Lichess",
        "uniform": "anybody",
    }
    return titles_by_name.get(str(name), "an engine" if name in _ENGINES else "")


def _described(spec: Mapping[str, Any], engine: str, deep: int) -> str:
    """A policy in words."""
    name = spec.get("name")
    if not deep:
        return "another model"
    if name == "games":
        who = f"{spec['player']}'s games" if "player" in spec else "games of everybody"
        if "prior" not in spec:
            return who
        return f"{who}; where they say little, {_described(_parsed(spec['prior']), engine, deep - 1)}"
    if name == "noisy":
        inside = _described(_parsed(spec.get("policy")), engine, deep - 1)
        return f"{inside}, and any legal move in {_percent(spec.get('epsilon', 0.1))} of cases"
    if name == "mixture":
        parts, which = _parts(spec), "each move" if spec.get("per") == "move" else "each game"
        engines = [part for part in parts if part.get("name") == "uci" and "engine" not in part]
        told = [_described(part, engine, deep - 1) for part in parts if part not in engines]
        if len(engines) > 1:
            told.insert(0, _engines_words(engines, engine))
        else:
            told = [_described(part, engine, deep - 1) for part in parts]
        return f"one of these for {which}: {'; '.join(told)}"
    if name == "uci":
        return _engine_words(spec, engine)
    known = {
        "family": "an engine of the family, the same for the whole game",
        "polyglot": "an opening book",
        "explorer": "games of the Lichess explorer",
        "uniform": "any legal move, each as likely",
    }
    return known.get(str(name), "a model of its own")


def _engine_words(spec: Mapping[str, Any], engine: str) -> str:
    who = "an engine of its own" if "engine" in spec else engine or "an engine"
    limits = [limit_words(f"{name}={spec[name]}") for name in ("nodes", "depth") if name in spec]
    who = ", ".join([who, *limits])
    if spec.get("plays") in ("bestmove", "game"):
        return f"{who}, the move that it answers"
    return f"{who}, one of its best moves, the better the likelier" + (
        f" (r = {spec['r']} cp)" if "r" in spec else ""
    )


def _engines_words(specs: Sequence[Mapping[str, Any]], engine: str) -> str:
    """Several engines that differ in how far they look and how they choose."""
    limits = dict.fromkeys(
        limit_words(f"{name}={spec[name]}") for spec in specs for name in ("nodes", "depth") if name in spec
    )
    drawn = dict.fromkeys(str(spec["r"]) for spec in specs if "r" in spec)
    who = ", ".join(filter(None, (engine or "an engine", " or ".join(limits))))
    chosen = f" (r = {', '.join(drawn)} cp)" if drawn else ""
    return f"{len(specs)} engines, {who}, each plays one of its best moves, the better the likelier{chosen}"


def _percent(share: Any) -> str:
    with contextlib.suppress(TypeError, ValueError):
        return f"{100.0 * float(share):.3g}%"
    return "some"
