"""Calls that work."""
