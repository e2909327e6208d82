"""Prepares one side of a chess game against one opponent: the command `precomp-games prepare`.

python examples/chess_preparation.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import prepare

if __name__ == "__main__":
    common.end_with(prepare)
