"""Games, books and repertoires: what is read from files and written to them."""
