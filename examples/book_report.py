"""Makes a page of books, and files to study with: the command `precomp-games report`.

python examples/book_report.py --help
"""

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from precomp_games.commands import report

if __name__ == "__main__":
    common.end_with(report)
