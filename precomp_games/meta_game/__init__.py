"""The meta-game of preparing as an OpenSpiel game: its rules in both forms, and its export for Gambit."""
