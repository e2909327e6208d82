"""The history tree: a game and both sides' play as arrays, and how they are expanded."""
