"""Fits what an analyst's score is worth in games: the command `precomp-games calibrate`.

python examples/calibrate_evaluation.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import calibrate

if __name__ == "__main__":
    common.end_with(calibrate)
