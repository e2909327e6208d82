"""What is fuzzed, by what it reads; importing this registers all targets."""

from tools.fuzz.targets import books, engines, examples, files, texts, trust

__all__ = ["books", "engines", "examples", "files", "texts", "trust"]
