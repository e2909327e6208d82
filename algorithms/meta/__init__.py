"""The meta-game beside OpenSpiel's policies, and between its equilibria and Algorithm 1; see `zero_sum`."""
