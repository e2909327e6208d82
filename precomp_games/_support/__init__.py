"""Support that knows nothing of games: checks, errors, files, memory, kernels."""
