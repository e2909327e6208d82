"""What is fuzzed, by what it reads; importing this registers all targets."""

from tests.fuzz.targets import books, engines, files, texts

__all__ = ["books", "engines", "files", "texts"]
