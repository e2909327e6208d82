"""Prepares against an engine by playing against it: the command `precomp-games spar`.

python examples/sparring.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import spar

if __name__ == "__main__":
    common.end_with(spar)
