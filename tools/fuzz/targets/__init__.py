"""What is fuzzed, by what it reads; importing this registers all targets."""

from tools.fuzz.targets import engines, files, texts

__all__ = ["engines", "files", "texts"]
