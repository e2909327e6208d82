"""From settings to a book, and books to compare it with."""
