"""Reviews games that you have played: the command `precomp-games review`.

python examples/review_games.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import review

if __name__ == "__main__":
    common.end_with(review)
