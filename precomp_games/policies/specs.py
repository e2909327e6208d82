"""Policies by name, where only text fits: in flags and in game parameters.

    make_policy(game, "uniform")
    make_policy(game, "noisy(policy=cfr(iterations=200),epsilon=0.1)")

A text or dictionary that names a policy is called a spec. OpenSpiel's own parser for game strings reads it,
so every argument is named, and an argument may be a spec itself. The dictionaries that the parser makes of
specs are accepted as well. A text with parentheses, commas, equals signs or line ends in it, or that looks
like a number, stands in double quotes, with the escapes of JSON (`quoted`):

    games(file="my games (1).pgn",player=Karpov Anatoli)

A module adds a policy with `register_policy`. Packages name such modules as entry points of the group
"precomp_games.policies", and the modules are imported when a spec is first asked for.
`precomp_games.algorithms.search` registers its policies in this manner.

Some policies open a file or run an engine that their spec names. A spec may come from anywhere, such as a
game string or somebody else's result. So `make_policy` refuses the arguments that name files or engines,
unless its caller vouches for the spec (`trusted=True`).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import hashlib
import importlib.metadata
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import best_response as openspiel_best_response

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, did_you_mean, one_line, public, shown
from precomp_games._support.config import bar
from precomp_games._support.game_facts import information_state, infoset_key, legal_actions
from precomp_games._support.results import Shown
from precomp_games.policies.mixtures import MixturePolicy, refuse_mixture_inside
from precomp_games.policies.rows import as_batch_policy, is_of_history

PolicyFactory = Callable[..., openspiel_policy.Policy]
Spec: TypeAlias = str | Mapping[str, Any] | openspiel_policy.Policy
_Texts = Annotated[Iterable[str], checks.each_of(str)]


class _Named(NamedTuple):
    """A function, its arguments beside the game with their defaults, and those that touch the machine."""

    factory: PolicyFactory
    defaults: dict[str, Any]
    touches: frozenset[str]


_FACTORIES: dict[str, _Named] = {}

# Whether the spec is trusted whose policy is being made; what a factory makes of its parts is as trusted.
_TRUSTED: contextvars.ContextVar[bool | None] = contextvars.ContextVar("trusted", default=None)

_NAME = r"[A-Za-z_]\w*"
_ARGUMENT = rf"{_NAME}=[^\s(),=][^(),=\n]*"  # files and people have names of many characters
_QUOTED = re.compile(r'(?<==)("(?:[^"\\]|\\.)*")\s*(?=[,)])', re.S)
# What is an argument as it is: OpenSpiel's parser makes no number and no truth value of it.
_PLAIN = re.compile(r'(?![-+.\d]*\Z|[Tt]rue\Z|[Ff]alse\Z)[^\s"(),=][^(),=]*(?<!\s)')
_INNERMOST = re.compile(rf"\b({_NAME})\(({_ARGUMENT}(,{_ARGUMENT})*)?\)(?![\w(.+-])")


@public
def register_policy(name: str, factory: PolicyFactory, *, touches: _Texts = ()) -> None:
    """Make `factory(game, **arguments)` available as `name(argument=value,...)`.

    The factory's keyword arguments all have defaults, whose types limit what a spec may give.

    Args:
      name: an identifier.
      factory: a function of a game and of what a spec gives.
      touches: the arguments that name what is opened, run or written, such as a file. Only specs that are
        trusted may give them.

    Raises:
      ValueError: the name is taken, or no identifier; `factory` is no such function, or lacks what `touches`.
    """
    if not name.isidentifier() or name in _FACTORIES:
        raise ArgumentError(f"expected a new identifier, got {shown(name)}")
    parameters: list[inspect.Parameter] = []
    with contextlib.suppress(TypeError, ValueError):  # some built-in functions have no signature
        parameters += inspect.signature(factory).parameters.values()
    if not parameters or any(p.default is p.empty for p in parameters[1:]):
        kind = "take a game, and further arguments with defaults"
        raise ArgumentError(f"expected factory to {kind}, got {shown(factory)}")
    defaults = {p.name: p.default for p in parameters[1:]}
    if not set(touches) <= defaults.keys():
        some = ", ".join(defaults) or "no arguments"
        raise ArgumentError(f"expected touches to be some of {some}, got {shown(touches)}")
    _FACTORIES[name] = _Named(factory, defaults, frozenset(touches))


@functools.cache
def _load_entry_points() -> None:
    for point in importlib.metadata.entry_points(group="precomp_games.policies"):
        point.load()


def policy_names() -> dict[str, str]:
    """Return each known name with its arguments and their defaults, as help texts have them."""
    _load_entry_points()
    return {
        name: ",".join(f"{key}={default}" for key, default in _FACTORIES[name].defaults.items())
        for name in sorted(_FACTORIES)
    }


@public
def make_policy(game: pyspiel.Game, spec: Spec, *, trusted: bool | None = None) -> openspiel_policy.Policy:
    """Return the policy that a spec names.

    Args:
      game: whose policy.
      spec: the name, with arguments; or a policy, which is itself. A part of a dictionary may be one.
      trusted: it may open, run and write what it names: you or your user wrote it. A spec that was read from
        a file is not to be trusted. None: where a factory makes a part of a spec, as the whole is, which no
        part exceeds; elsewhere it is not.

    Raises:
      ValueError: the spec cannot be read, or names no policy, or an argument that it does not have; or one
        that touches the machine, and is not trusted.
    """
    if isinstance(spec, openspiel_policy.Policy):
        return spec
    whole = _TRUSTED.get()
    trusted = bool(whole) if trusted is None else trusted and whole is not False
    if not trusted and (named := touched(spec)):
        got = f"{named} in {shown(spec)}: trusted=True allows it, for specs that you or your user wrote"
        raise ArgumentError(f"expected a spec that opens and runs nothing, got {got}")
    arguments = parsed_spec(spec)
    names = policy_names()
    name = arguments.pop("name", None)
    if not isinstance(name, str) or name not in _FACTORIES:
        hint = did_you_mean(name, names)
        raise ArgumentError(f"expected one of {', '.join(names)}, got {shown(spec)}{hint}")
    factory, defaults, _ = _FACTORIES[name]
    for key, value in arguments.items():
        if key not in defaults:
            got = f"{shown(key)} in {shown(spec)}{did_you_mean(key, defaults)}"
            raise ArgumentError(f"expected the arguments {name}({names[name]}), got {got}")
        default = defaults[key]
        if isinstance(default, float) and type(value) in (int, str) and _is_number(value):
            arguments[key] = float(value)  # OpenSpiel's parser leaves 1e-3 as text
        elif isinstance(default, str) and isinstance(value, Mapping | openspiel_policy.Policy):
            continue  # a nested spec, parsed already, or made
        elif isinstance(default, str) and type(value) in (int, float):
            arguments[key] = str(value)  # a text of digits alone
        elif not isinstance(value, type(default)) or isinstance(value, bool) != isinstance(default, bool):
            kind, got = type(default).__name__, f"{shown(value)} in {shown(spec)}"
            raise ArgumentError(f"expected {key} of {name} to be {kind}, got {got}")
    token = _TRUSTED.set(trusted)
    try:
        return factory(game, **arguments)
    finally:
        _TRUSTED.reset(token)


def parsed_spec(spec: Any) -> dict[str, Any]:
    """Return a spec as OpenSpiel's parser gives it: the name under "name", specs in it perhaps still texts.

    Raises:
      ValueError: it is none.
    """
    if not isinstance(spec, str | Mapping):
        raise ArgumentError(f"expected a string or a dictionary, got {shown(spec)}")
    _load_entry_points()
    return dict(spec) if isinstance(spec, Mapping) else parsed_call(spec)


def touched(spec: Any) -> str:
    """Return the first argument of a spec that touches the machine, as "uci(engine=...)"; "" if none.

    Raises:
      ValueError: it is no spec.
    """
    waiting = [parsed_spec(spec)]
    while waiting:
        arguments = waiting.pop()
        name = arguments.get("name")
        known = _FACTORIES.get(name) if isinstance(name, str) else None
        named = sorted(known.touches & set(arguments)) if known else []
        if named:
            return f"{name}({named[0]}=...)"
        for value in arguments.values():
            if isinstance(value, Mapping):
                waiting.append(dict(value))
            elif isinstance(value, str) and "(" in value:  # a part that is parsed where it is made
                with contextlib.suppress(ValueError):
                    waiting.append(parsed_call(value))
    return ""


def policies_in(spec: Any, depth: int = 5) -> list[str]:
    """Return the names of a spec's policy and of those in it down to a depth; [] if it is no spec."""
    try:
        arguments = parsed_spec(spec)
    except ValueError:
        return []
    inside = [value for name, value in arguments.items() if name not in ("name", "weights", "per")]
    found = [name for value in inside if depth for name in policies_in(value, depth - 1)]
    return [str(arguments.get("name", "")), *found]


def check_spec(value: Any, name: str) -> str:
    """Return a text that names a policy, whose arguments and files are another matter.

    Raises:
      ValueError: it cannot be read, or names nothing that is known.
    """
    given = ""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            given = parsed_call(value)["name"]
            if given in policy_names():
                return value
    known = policy_names()
    got = f"{shown(value)}{did_you_mean(given, known)}"
    raise ArgumentError(f"expected {name} to be a policy by name ({', '.join(known)}), got {got}")


def quoted(text: str) -> str:
    """Return a text as an argument of a spec: as it is where that is clear, else in double quotes."""
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def in_game_string(text: str) -> str:
    """Return a text as an argument of OpenSpiel's own game strings, whose parser knows no quotes.

    In quotes, it has escapes in place of what that parser has uses for; who gets it reads it by `unquoted`.
    """
    if (plain := quoted(text)) == text:
        return text
    return re.sub(r"[(),=]", lambda match: f"\\u{ord(match[0]):04x}", json.dumps(json.loads(plain)))


def unquoted(value: Any) -> Any:
    """Undo `quoted` or `in_game_string`, also within a dictionary; return other values as they are."""
    if isinstance(value, Mapping):
        return {key: unquoted(each) for key, each in value.items()}
    if isinstance(value, str) and value[:1] == '"' == value[-1:] != value:
        with contextlib.suppress(ValueError):
            return json.loads(value, strict=False)
    return value


def _escaped(match: re.Match[str]) -> str:
    if (text := unquoted(match[1])) == match[1]:
        escapes = "the escapes of JSON in double quotes, such as \\\\ for \\"
        raise ArgumentError(f"expected {escapes}, got {match[1][:200]!r}")
    return in_game_string(text)


def _is_number(text: str | int) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def parsed_call(spec: str) -> dict[str, Any]:
    """Return the name and the arguments of a spec or of a game string, in which quotes are read.

    Raises:
      ValueError: it is none.
    """
    # OpenSpiel's parser aborts on some malformed strings and ignores what it does not understand in others
    # ("cfr(1000)"), so only specs go in: calls are taken out from the inside until one name is left.
    spec = whole = spec.strip()
    if '="' in spec:
        whole = _QUOTED.sub(_escaped, spec)
    rest, inner = whole, ""
    while rest != inner:
        rest, inner = _INNERMOST.sub(r"\1", rest), rest
    if not re.fullmatch(_NAME, rest):
        raise ArgumentError(f"expected a spec such as 'uniform' or 'cfr(iterations=100)', got {shown(spec)}")
    try:
        return dict(unquoted(pyspiel.game_parameters_from_string(whole.replace("()", ""))))
    except (pyspiel.SpielError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"expected a policy spec, got {shown(spec)}: {one_line(error)}") from None


# Policies are classes without functions in them, so that they can be pickled and sent to other processes.


class _NamedPolicy(Shown, openspiel_policy.Policy):
    """A policy of all players of a game."""

    def __init__(self, game: pyspiel.Game) -> None:
        super().__init__(game, list(range(game.num_players())))


class _RandomPolicy(_NamedPolicy):
    """Draws a row for each information state, from the seed and its name alone."""

    def __init__(self, game: pyspiel.Game, seed: int, concentration: float) -> None:
        super().__init__(game)
        self._seed, self._concentration = seed, concentration

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        digest = hashlib.blake2b(infoset_key(state).encode(), digest_size=16).digest()
        rng = np.random.default_rng([self._seed % 2**64, *np.frombuffer(digest, np.uint32).tolist()])
        actions = legal_actions(state)
        weights = rng.dirichlet(np.full(len(actions), self._concentration))
        return dict(zip(actions, weights.tolist(), strict=True))


class _TablePolicy(_NamedPolicy):
    """Looks rows up by information state string, in a table of the player who moves."""

    def __init__(self, game: pyspiel.Game, tables: Sequence[Mapping[str, dict[int, float]]]) -> None:
        super().__init__(game)
        self._tables = tables

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        player = state.current_player()
        name = information_state(state)
        row = self._tables[player].get(name)
        if row is None:
            known = f"an information state of player {player} that the policy was computed for"
            raise ArgumentError(f"expected {known}, got {name!r}; is it a policy of another game?")
        return dict(row)


class _NoisyPolicy(_NamedPolicy):
    """Plays another policy, but for a part of the time any action."""

    def __init__(self, game: pyspiel.Game, policy: openspiel_policy.Policy, epsilon: float) -> None:
        super().__init__(game)
        self.policy, self._epsilon = policy, epsilon
        self._ask = as_batch_policy(policy)
        self.of_history = is_of_history(policy)

    def action_probabilities_batch(self, states: Sequence[Any]) -> list[dict[int, float]]:
        rows = []
        for state, played in zip(states, self._ask(states), strict=True):
            actions = legal_actions(state)
            noise = self._epsilon / len(actions)
            row = {action: (1.0 - self._epsilon) * played.get(action, 0.0) + noise for action in actions}
            rows.append(row)
        return rows

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        return self.action_probabilities_batch([state])[0]


@public
def _random(
    game: pyspiel.Game, seed: int = 0, concentration: checks.PositiveFloat = 1.0
) -> openspiel_policy.Policy:
    return _RandomPolicy(game, seed, concentration)


@public
def _cfr(game: pyspiel.Game, iterations: checks.PositiveInt = 100) -> openspiel_policy.Policy:
    kind = game.get_type()
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL or not kind.provides_information_state_string:
        wanted = "a sequential game with information state strings"
        raise ArgumentError(f"expected {wanted} for cfr, got {kind.short_name}")
    solver = pyspiel.CFRPlusSolver(game)
    with bar("CFR+", "iterations", iterations, leave=False) as show:
        for done in range(iterations):
            solver.evaluate_and_update_policy()
            show(done + 1)
    average = solver.tabular_average_policy().policy_table()
    table = {name: dict(row) for name, row in average.items()}
    return _TablePolicy(game, [table] * game.num_players())


def _best_response(game: pyspiel.Game, to: str = "uniform") -> openspiel_policy.Policy:
    other = make_policy(game, to)
    tables = []
    for player in range(game.num_players()):
        response = openspiel_best_response.BestResponsePolicy(game, player, other)
        tables.append({name: {response.best_response_action(name): 1.0} for name in response.infosets})
    return _TablePolicy(game, tables)


@public
def _noisy(
    game: pyspiel.Game,
    policy: Any = "uniform",
    epsilon: Annotated[float, checks.Ge(0.0), checks.Le(1.0)] = 0.1,
) -> openspiel_policy.Policy:
    played = make_policy(game, policy)
    refuse_mixture_inside(played, "policy of noisy")
    return _NoisyPolicy(game, played, epsilon)


def _mixture(
    game: pyspiel.Game, weights: Any = "equal", per: str = "game", **given: Any
) -> openspiel_policy.Policy:
    """Return the spec "mixture(a=...,b=...,weights=of(a=3,b=1),per=game)"."""
    parts = sorted(({"a": "uniform"} | given).items())
    specs = {letter: spec for letter, spec in parts if spec not in ("none", {"name": "none"})}
    shares: Any = dict.fromkeys(specs, 1.0) | {"name": "of"} if weights == "equal" else weights
    if not isinstance(shares, Mapping) or set(shares) != {"name", *specs} or shares["name"] != "of":
        wanted = ",".join(f"{letter}=1" for letter in specs)
        kind = f"equal or of({wanted}), with a number for each component"
        raise ArgumentError(f"expected weights of mixture to be {kind}, got {shown(weights)}")
    policies = [make_policy(game, spec) for spec in specs.values()]
    return MixturePolicy(policies, [shares[letter] for letter in specs], per)


for _name, _factory in (
    ("uniform", openspiel_policy.UniformRandomPolicy),
    ("random", _random),
    ("cfr", _cfr),
    ("best_response", _best_response),
    ("noisy", _noisy),
):
    register_policy(_name, _factory)
_PARTS = dict.fromkeys("abcdefgh", "none") | {"a": "uniform", "weights": "equal", "per": "game"}
_FACTORIES["mixture"] = _Named(_mixture, _PARTS, frozenset())
