"""Games, books and repertoires, read from files and written to them."""
