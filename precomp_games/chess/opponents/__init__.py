"""Opponents: by counts of a person's games, by name, and how well they fit."""
