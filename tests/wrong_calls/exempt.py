"""Public names that no wrong call is generated for, and why."""

_RESULT = "a result: made by the library, read by users"

_ERROR = "an exception: made by the library, caught by users"

EXEMPT: dict[str, str] = {
    # chess
    "precomp_games.chess:EngineError": _ERROR,
    "precomp_games.chess:EngineNotFoundError": _ERROR,
    "precomp_games.chess:StoreError": _ERROR,
}
