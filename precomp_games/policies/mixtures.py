"""Several opponents at once: one of K players is drawn, for the whole game or anew at each move.

Drawn once per game, with probabilities w_k, the players sigma_k together play the behavioral policy

    sigma(a | h) = sum_k p_k(h) sigma_k(a | h),        p_k(h) = w_k r_k(h) / sum_j w_j r_j(h),

where r_k(h) is the product of sigma_k over the mixed player's own moves on the path to h (under imperfect
information, at its own information states), and p_k(h) the posterior: who it probably is, after these moves.
Every history is reached as often as if the player were drawn by a chance move that neither player
observes (docs/mixtures.md has the argument). So what is exact against a policy is exact against a mixture.

sigma depends on the history through p alone, and the sigma_k may depend on the position alone. So histories
that lead to one position can share the components' answers, as in `HistoryTree.from_game`, but their mixture
has to be computed for each history.

A history that no component plays has probability zero. There the player is drawn anew by w, and only what it
does from then on counts.

Source: Kuhn's theorem; the derivation is in docs/mixtures.md. Cost: one call to each component for each
distinct state, and K numbers for each own turn on the path there; what is asked about is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Shown
from precomp_games.policies import rows

_PER = ("game", "move")
_MOST_KEPT = 10_000_000  # numbers: 80 MB

_History = tuple[int, ...]
_States = Annotated[Sequence[Any], checks.each_of(pyspiel.State)]


class _Answer(NamedTuple):
    """The components' policies at a state: actions, and float64[K, actions]."""

    actions: list[int]
    probabilities: npt.NDArray[np.float64]


class _Turn(NamedTuple):
    """An own turn of a player: the posterior there, float64[K], and what the components play."""

    posterior: npt.NDArray[np.float64]
    answer: _Answer


class MixturePolicy(Shown, openspiel_policy.Policy):
    """A policy that is one of K players, drawn for the whole game or anew at each move.

    Either player may be asked for; each is a draw of its own. It can be pickled where its components can.

    Attributes:
      policies: The components. One that is itself drawn once per game has been replaced by its own.
      weights: float64[K], the probabilities with which they are drawn.
      per: "game" or "move".
      components: The policies as functions of many states.
    """

    @public
    def __init__(
        self,
        policies: Sequence[rows.PolicyLike],
        weights: npt.ArrayLike | None = None,
        per: Annotated[str, checks.one_of(_PER)] = "game",
        *,
        position_key: Callable[[Any], Hashable] | None = None,
    ) -> None:
        """Make the mixture.

        Args:
          policies: K players, at least one, each as `HistoryTree.from_game` takes it. They must not depend
            on more of the history than `position_key` shows.
          weights: the probabilities of drawing each, positive; they need not sum to 1. None: all equal.
          per: "game", one is drawn for the whole game, or "move", one anew at each move, which is the
            average of what they play.
          position_key: states with equal keys, after equally many moves, are the same to all components,
            which are then asked once about them. None: every history is asked about.
        """
        if isinstance(policies, str | bytes | Mapping) or not isinstance(policies, Sequence) or not policies:
            raise ArgumentError(f"expected policies to be a sequence of them, got {shown(policies)}")
        weights = np.ones(len(policies)) if weights is None else weights
        given = checks.check_numbers(weights, len(policies), "weights")
        if not (given > 0.0).all() or not np.isfinite(given.sum()):
            raise ArgumentError(f"expected weights to be positive numbers, got {shown(weights)}")
        parts: list[tuple[rows.PolicyLike, float]] = []
        for policy, weight in zip(policies, (given / given.sum()).tolist(), strict=True):
            if drawn_once(policy):
                if per == "move":
                    refuse_mixture_inside(policy, 'components for per="move"')
                parts += zip(policy.policies, (weight * policy.weights).tolist(), strict=True)
            else:
                parts.append((policy, weight))
        self.policies = tuple(policy for policy, _ in parts)
        self.weights = np.array([weight for _, weight in parts])
        self.weights.flags.writeable = False
        self.per = per
        parts_of = enumerate(self.policies)
        self.components = tuple(rows.as_batch_policy(policy, f"policies[{k}]") for k, policy in parts_of)
        self._position_key = position_key
        self._forget()
        games = (getattr(policy, "game", None) for policy in self.policies)
        super().__init__(next((game for game in games if isinstance(game, pyspiel.Game)), None), [0, 1])

    def _forget(self) -> None:
        self._answers: dict[Hashable, _Answer] = {}
        self._turns: dict[tuple[int, _History], _Turn] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_answers": {}, "_turns": {}}

    @property
    def of_history(self) -> bool:
        """Return whether a component depends on more than the position, see `is_of_history`."""
        return any(map(rows.is_of_history, self.policies))

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} of what some component may play at a state where a player moves.

        Args:
          state: of the base game.
          player_id: the mover there.

        Raises:
          ValueError: a component's answer is wrong.
        """
        checks.check_turn(self._known_game(state), player_id)
        return self._rows([state])[0]

    @public
    def action_probabilities_batch(self, states: _States) -> list[dict[int, float]]:
        """Return the policy at several states; each component is asked about all new ones in one batch.

        Raises:
          ValueError: states where nobody moves, or a component's answer is wrong.
        """
        for state in states:
            checks.check_turn(self._known_game(state), None)
        return self._rows(states)

    @public
    def posterior(self, state: Any, player: checks.Player) -> npt.NDArray[np.float64]:
        """Return the posterior of a player's components, after its moves so far.

        Args:
          state: of the base game; whoever is to move there.
          player: 0 or 1, who is the mixture.

        Returns:
          float64[K], sum 1; the weights where each move is drawn anew.

        Raises:
          ValueError: a component's answer is wrong.
        """
        return np.asarray(self.posteriors([state], player)[0])

    @public
    def posteriors(self, states: _States, player: checks.Player) -> npt.NDArray[np.float64]:
        """Return float64[n, K]: `posterior` of several states, about which components are asked in one batch.

        Raises:
          ValueError: as there.
        """
        wanted = [(self._known_game(state), player, _own_turns(state, player)) for state in states]
        found = np.tile(self.weights, (len(wanted), 1))
        if self.per == "game":
            self._learn(wanted)
            for k, (state, _, before) in enumerate(wanted):
                found[k] = self._after(tuple(state.history()), player, before)
        return found

    def _known_game(self, state: Any) -> Any:
        """Return a state of the components' game, whatever its parameters: a longer chess game will do."""
        game = checks.check_state(state).get_game()
        if self.game is not None and game.get_type().short_name != self.game.get_type().short_name:
            raise ArgumentError(f"expected a state of {shown(str(self.game))}, got one of {shown(str(game))}")
        return state

    def _rows(self, states: Sequence[Any]) -> list[dict[int, float]]:
        if self.per == "move":
            mixed = [(self.weights @ answer.probabilities, answer.actions) for answer in self._ask(states)]
        else:
            wanted = []
            for state in states:
                player = int(state.current_player())
                wanted.append((state, player, [*_own_turns(state, player), len(state.history())]))
            self._learn(wanted)
            turns = [self._turns[player, tuple(state.history())] for state, player, _ in wanted]
            mixed = [(turn.posterior @ turn.answer.probabilities, turn.answer.actions) for turn in turns]
        return [dict(zip(actions, probabilities.tolist(), strict=True)) for probabilities, actions in mixed]

    def _learn(self, wanted: list[tuple[Any, int, list[int]]]) -> None:
        """Make known what is played at turns: (a state, whose turns, after how many moves) each."""
        if (len(self._turns) + len(self._answers)) * len(self.weights) > _MOST_KEPT:
            self._forget()
        new: dict[tuple[int, _History], Any] = {}
        for state, player, turns in wanted:
            history = tuple(state.history())
            unknown = {n for n in turns if (player, history[:n]) not in self._turns}
            new |= {(player, prefix): at for prefix, at in _ancestors(state, unknown)}
        answers = self._ask(list(new.values()))
        for ((player, history), state), answer in sorted(
            zip(new.items(), answers, strict=True), key=lambda each: len(each[0][0][1])
        ):
            posterior = self._after(history, player, _own_turns(state, player))
            self._turns[player, history] = _Turn(posterior, answer)

    def _after(self, history: _History, player: int, turns: list[int]) -> npt.NDArray[np.float64]:
        """Return the posterior after a history, where the player's own turns before are known."""
        if not turns:
            return self.weights
        last = self._turns[player, history[: turns[-1]]]
        action, answer = history[turns[-1]], last.answer
        if action not in answer.actions:
            return self.weights
        joint = last.posterior * answer.probabilities[:, answer.actions.index(action)]
        total = joint.sum()
        return joint / total if total > 0.0 else self.weights

    def _ask(self, states: Sequence[Any]) -> list[_Answer]:
        """Return the components' policies at states, each asked once about equal ones."""
        if (key_of := self._position_key) is None:
            return self._answers_of(states)
        distinct = rows.DistinctStates(lambda at: (at.move_number(), at.current_player(), key_of(at)))
        which = distinct.add(states)
        keys = distinct.keys
        new = [k for k, key in enumerate(keys) if key not in self._answers]
        answers = self._answers_of([distinct.states[k] for k in new])
        self._answers |= {keys[k]: answer for k, answer in zip(new, answers, strict=True)}
        return [self._answers[keys[k]] for k in which]

    def _answers_of(self, states: Sequence[Any]) -> list[_Answer]:
        if not states:
            return []
        at = np.arange(len(states))
        asks = enumerate(self.components)
        played = [(at, rows.policy_rows(ask, states, name=component_name(k))) for k, ask in asks]
        start, action, columns, _ = rows.joined_rows(played, len(states))
        probability, ends = np.ascontiguousarray(columns.T), itertools.pairwise(start.tolist())
        return [_Answer(action[a:b].tolist(), probability[a:b].copy().T) for a, b in ends]


def component_name(number: int) -> str:
    """Return a component's name for errors."""
    return f"component {number} of the mixture"


def _own_turns(state: Any, player: int) -> list[int]:
    """Return the move numbers of a player's turns on the path to a state."""
    return [n for n, move in enumerate(state.full_history()) if move.player == player]


def _ancestors(state: Any, lengths: set[int]) -> list[tuple[_History, Any]]:
    """Return (history, state) of the ancestors of a state, and of itself, that have so many moves."""
    history = tuple(state.history())
    states = [(history, state.clone())] if len(history) in lengths else []
    earlier = lengths - {len(history)}
    if earlier:
        at = state.get_game().new_initial_state()
        for n in range(max(earlier) + 1):
            if n in earlier:
                states.append((history[:n], at.clone()))
            at.apply_action(history[n])
    return states


def drawn_once(policy: Any) -> bool:
    """Return whether a policy is a mixture that is drawn once per game, and so depends on the history."""
    return isinstance(policy, MixturePolicy) and policy.per == "game"


def refuse_mixture(policy: Any, name: str) -> None:
    """Refuse a mixture that is drawn once per game for a player who memorizes.

    Raises:
      ValueError: it is one.
    """
    if drawn_once(policy):
        raise ArgumentError(
            f"expected {name} to be no mixture that is drawn once per game, since this player memorizes: "
            'what it has by heart says nothing of which component it is. MixturePolicy(..., per="move") '
            "depends on no history; an opponent that never memorizes (penalty math.inf) may be any mixture"
        )


def refuse_mixture_inside(policy: Any, name: str) -> None:
    """Refuse a mixture that is drawn once per game as a part of a policy that depends on no history.

    Raises:
      ValueError: it is one.
    """
    if drawn_once(policy):
        got = 'a mixture that is drawn once per game; make it per="move", or a mixture of such policies of it'
        raise ArgumentError(f"expected {name} to depend on no history, got {got}")
