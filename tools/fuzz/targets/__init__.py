"""Targets of fuzzing, by what they read; importing this registers all of them."""

from tools.fuzz.targets import engines, files, texts

__all__ = ["engines", "files", "texts"]
