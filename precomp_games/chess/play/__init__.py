"""Books and opponents at the board: matches, UCI players, and our own UCI engine."""
