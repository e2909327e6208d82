"""Plays a book against the opponent that it was made for: the command `precomp-games match`.

python examples/book_match.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import match

if __name__ == "__main__":
    common.end_with(match)
