"""`python -m precomp_games`, as `precomp-games`."""

import sys

from precomp_games.commands import main

if __name__ == "__main__":
    sys.exit(main())
