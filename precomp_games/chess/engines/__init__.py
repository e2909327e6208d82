"""UCI engines: searches, processes, clusters, and the store of results."""
