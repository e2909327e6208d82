"""The two engines of a preparation, with what is asked of them and how often."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

from precomp_games._support import bars
from precomp_games._support.arguments import each_of, public
from precomp_games._support.results import Shown
from precomp_games.chess.books.book import Book
from precomp_games.chess.engines.stored_engine import StoredEngine
from precomp_games.chess.opponents.family_values import FamilyEvaluation
from precomp_games.chess.play.match import MatchResult, play_match
from precomp_games.chess.preparation.policies import PreparationPolicies, preparation_policies
from precomp_games.chess.preparation.settings import PreparationSettings


@public
@dataclasses.dataclass
class Engines(Shown):
    """The analyst's and the opponent's engine; often one and the same."""

    analyst: StoredEngine
    opponent: StoredEngine
    _policies: dict[PreparationSettings, PreparationPolicies] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    @public
    def policies(self, settings: PreparationSettings) -> PreparationPolicies:
        """`preparation_policies`, made once: an opponent may be a file of games, read and fitted."""
        key = dataclasses.replace(settings, penalty=1.0, distrust=0.0)  # which policies do not depend on
        if key not in self._policies:
            self._policies[key] = preparation_policies(settings, self.analyst, self.opponent)
        return self._policies[key]

    @public
    def misfits(self, settings: PreparationSettings) -> list[str]:
        """Lines that say where a fitted evaluation was fitted to something else than these settings.

        One of a family is fitted to the games of each preparation.
        """
        value = self.policies(settings).leaf_value
        if isinstance(value, FamilyEvaluation):
            return []
        return settings.kind.misfits(settings, value, self.analyst.engine_id)

    @property
    def searches(self) -> int:
        """How many searches have been made; all others were in the store."""
        return sum(engine.searches for engine in self._distinct())

    @property
    def can_search(self) -> bool:
        """Whether there are engines, and not stored searches alone."""
        return all(engine.pool is not None for engine in self._distinct())

    def start_record(self) -> set[tuple[str, str, int, str]]:
        """A set that the store's keys of all that is asked for from now on go into."""
        record: set[tuple[str, str, int, str]] = set()
        for engine in self._distinct():
            engine.record = record
        return record

    @public
    def export(
        self,
        path: str | os.PathLike[str],
        record: Annotated[Iterable[tuple[str, str, int, str]], each_of(tuple)],
    ) -> None:
        """Writes the searches that a record names to a store of their own."""
        self.analyst.store.export(path, keys=sorted(record))

    @contextlib.contextmanager
    def progress(self, description: str) -> Iterator[Callable[[int, int], None]]:
        """A bar of searches with their rate, and of those that are known to be needed.

        Gives a function for the progress of `HistoryTree.from_game`. How many a tree needs shows level by
        level only, so no share of them is told.
        """
        with bars.progress(description, "searches") as show:
            engines, before = self._distinct(), self.searches
            left, by_level = dict.fromkeys(map(id, engines), 0), False

            def told(engine: StoredEngine, done: int, needed: int) -> None:
                left[id(engine)] = needed - done
                made = self.searches - before
                show(made, total=0 if by_level else made + sum(left.values()))

            def level(number: int, histories: int) -> None:
                nonlocal by_level
                by_level = True
                show(note=f"ply {number}, {histories} histories", total=0)

            for engine in engines:
                engine.progress = functools.partial(told, engine)
            try:
                yield level
            finally:
                for engine in engines:
                    engine.progress = None

    @public
    def match(
        self,
        description: str,
        book: Book,
        settings: PreparationSettings,
        games: int,
        *,
        seed: int | Sequence[int] = 0,
        own: Any = None,
        against: PreparationSettings | None = None,
    ) -> MatchResult:
        """Plays a match of a book, with a bar of games and of what they need in searches.

        Args:
          description: of the bar.
          book: what is played, and then what `settings` say we play out of book.
          settings: what the book was made by.
          games: how many.
          seed: of the games; they train nothing, whatever other seeds are.
          own: another policy for our play out of book.
          against: settings with another opponent.

        Raises:
          ValueError, EngineError: as `play_match`.
        """
        player, before, began = settings.player, self.searches, time.monotonic()
        policies, other = self.policies(settings), self.policies(against or settings)
        with bars.progress(description, "games", total=games) as show:

            def advance(finished: int) -> None:
                made = self.searches - before
                show(finished, f"{made} searches, {made / max(time.monotonic() - began, 1e-9):.0f}/s")

            return play_match(
                book,
                other.sigma[1 - player],
                policies.sigma[player] if own is None else own,
                games,
                seed=seed,
                min_probability=settings.min_probability,
                progress=advance,
            )

    def _distinct(self) -> list[StoredEngine]:
        return [self.analyst] + ([self.opponent] if self.opponent is not self.analyst else [])
