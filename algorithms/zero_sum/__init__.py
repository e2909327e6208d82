"""Zero-sum games on history trees: equilibria, best responses, NashConv.

A tree is of the meta-game, in which players may memorize something or stop, or of a game alone, in which they
choose everywhere (`HistoryTree.of_game`); the solvers are the same. `solve`, `responses` and `tables` are for
games alone, `equilibrium` and `exploitability` for both; the others are how these do it.
"""
