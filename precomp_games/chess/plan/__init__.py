"""Preparation: books, their values, and their later revision."""
