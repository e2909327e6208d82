"""Shared by the examples about people: flags that name the games to read, and these games."""

from __future__ import annotations

from absl import flags

from precomp_games.chess.model.people import FITTED as FITTED
from precomp_games.chess.model.people import KnownPerson as KnownPerson
from precomp_games.chess.model.people import read_person
from precomp_games.chess.model.people import spec_policy as spec_policy
from precomp_games.commands._flags import DATA

FLAGS = flags.FLAGS

_GAMES = flags.DEFINE_string(
    "games", None, "The person's games, in PGN. Default: the shipped sample of Karpov's."
)
_PLAYER = flags.DEFINE_string("player", None, "Who, as the file has the name.")
_POPULATION = flags.DEFINE_string(
    "population",
    None,
    "Games of others, in PGN; the person's are left out. Default, of the sample: a sample.",
)


def person(plies: int) -> KnownPerson:
    """Return the games of the flags, up to so many half-moves each."""
    path, player, population = _GAMES.value, _PLAYER.value, _POPULATION.value
    if path is None:
        path, player = str(DATA / "karpov_sample.pgn"), player or "Karpov Anatoli"
        population = population or str(DATA / "championship_sample.pgn")
    elif player is None:
        raise ValueError("--player: expected whose games in --games are meant, got none")
    return read_person(path, player, population, plies)


def years_of(found: KnownPerson, since: int, until: int) -> list[int]:
    """Return the years within --since and --until in which there are games, with others before.

    Raises:
      ValueError: there are none.
    """
    known = sorted(set(found.years.tolist()))
    years = [year for year in known if since <= year <= until]
    if not years or known[0] >= since:
        raise ValueError(
            f"--since: expected years with games, and games before them, within {known[0]} and {known[-1]}, "
            f"got --since={since} --until={until}"
        )
    return years
