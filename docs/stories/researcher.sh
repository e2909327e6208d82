# The researcher: from a game to who should memorize what, and what that is worth, in four commands.

# 10 seconds: an equilibrium of the game itself, and its certificate.
precomp-games solve --game=leduc_poker

# 10 seconds: Algorithm 1. Which positions should one side memorize against a fixed opponent, at this penalty?
python examples/best_precomputation.py --game=leduc_poker --penalty=0.05

# 10 seconds: Algorithm 2. Both prepare against each other: what do they memorize, and how often?
python examples/meta_equilibrium.py --game=kuhn_poker

# 10 seconds: how exploitable are players who prepare, as memory gets dearer?
python examples/kuhn_exploitability.py
