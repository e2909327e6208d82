"""Games and moves that were played: PGN and Polyglot."""
