"""Games and moves that were played: PGN, Polyglot and the opening explorer."""
