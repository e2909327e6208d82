"""UCI engines: searches, processes, clusters, and the store that keeps what they found."""
