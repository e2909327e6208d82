"""Public names that no wrong call is generated for, and why."""

_RESULT = "a result: made by the library, read by users"

EXEMPT: dict[str, str] = {
    "precomp_games.algorithms.lookahead:Commitment": _RESULT,
    "precomp_games.algorithms.lookahead:LookaheadEquilibrium": _RESULT,
    "precomp_games.algorithms.lookahead:LookaheadOutcome": _RESULT,
    "precomp_games.algorithms.lookahead:SequenceForm": _RESULT,
    "precomp_games.algorithms.search:MCTSResult": _RESULT,
    "precomp_games.algorithms.search:SearchResult": _RESULT,
}
