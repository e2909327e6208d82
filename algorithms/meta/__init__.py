"""Both sides prepare against each other: equilibria of the meta-game, and how far strategies are from one."""
