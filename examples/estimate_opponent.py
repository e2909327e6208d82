"""Fits how random an opponent is: the command `precomp-games estimate`.

python examples/estimate_opponent.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import estimate

if __name__ == "__main__":
    common.end_with(estimate)
