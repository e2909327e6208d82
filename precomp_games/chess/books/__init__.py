"""Books, their files, and repertoires that are there already."""
