"""Asks the positions of a book, and remembers what you knew: the command `precomp-games drill`.

python examples/drill.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import drill

if __name__ == "__main__":
    common.end_with(drill)
