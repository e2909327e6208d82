"""Any zero-sum game by itself, without preparation: equilibria, best responses, NashConv."""
