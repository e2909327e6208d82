"""An equilibrium of any two-player zero-sum game of OpenSpiel's: the command `precomp-games solve`.

python examples/equilibrium.py --game=leduc_poker --method=exact
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import solve

if __name__ == "__main__":
    common.end_with(solve)
