"""Preparing: books, what they are worth, and what is made of them later."""
