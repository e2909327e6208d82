"""From a game to a history tree: levels, positions, information states, and what is worth keeping."""
