"""What all of the library stands on, and what knows nothing of it: checks, errors, files, memory, kernels."""
