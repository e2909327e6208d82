"""What solves the models of `precomp_games`."""

from precomp_games.algorithms.best_precomputation import (
    BestPrecomputation,
    MemorisedState,
    best_precomputation,
)

__all__ = ["BestPrecomputation", "MemorisedState", "best_precomputation"]
