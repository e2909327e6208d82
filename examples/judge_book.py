"""Judges the opening book that you have: the command `precomp-games judge`.

python examples/judge_book.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import judge

if __name__ == "__main__":
    common.end_with(judge)
