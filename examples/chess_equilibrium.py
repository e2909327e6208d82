"""Both sides of a chess game prepare against each other: the command `precomp-games equilibrium`.

python examples/chess_equilibrium.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import equilibrium

if __name__ == "__main__":
    common.end_with(equilibrium)
