"""One side prepares against a fixed opponent: what is worth memorizing, and how sure that is."""
