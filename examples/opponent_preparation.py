"""Prepares both colors against a person, by its games: the command `precomp-games opponent`.

python examples/opponent_preparation.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import opponent

if __name__ == "__main__":
    common.end_with(opponent)
