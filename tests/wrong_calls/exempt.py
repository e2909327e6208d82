"""Public names that no wrong call is generated for, and why."""

_RESULT = "a result: made by the library, read by users"

_ERROR = "an exception: made by the library, caught by users"

EXEMPT: dict[str, str] = {
    # chess
    "precomp_games.chess:BookExit": _RESULT,
    **{
        f"precomp_games.chess:{name}": "needs a cluster: its wrong calls are in tests/chess/test_cluster.py"
        for name in ("DaskEngine", "DaskEngine.search")
    },
    "precomp_games.chess:EngineError": _ERROR,
    "precomp_games.chess:EngineMenu.entries_batch": "what expansions ask, with states of their own",
    "precomp_games.chess:EngineNotFoundError": _ERROR,
    "precomp_games.chess:DrillCard": _RESULT,
    **{
        f"precomp_games.chess:{player}.{method}": "what `UciEngine` asks of a player"
        for player in ("EnginePlayer", "PolicyPlayer")
        for method in ("command", "go", "set_option")
    },
    "precomp_games.chess:ExitScore": _RESULT,
    "precomp_games.chess:CountFit": _RESULT,
    "precomp_games.chess:GameRecord": _RESULT,
    "precomp_games.chess:GameRecord.mover": "asked for every move",
    "precomp_games.chess:GameReport": _RESULT,
    "precomp_games.chess:GameTable": _RESULT + "; read_table() makes it",
    "precomp_games.chess:GamesPolicy": _RESULT + "; games_policy() makes it",
    "precomp_games.chess:MatchGame": _RESULT,
    "precomp_games.chess:MatchResult": _RESULT,
    "precomp_games.chess:OpponentFit": _RESULT,
    "precomp_games.chess:PlayedGame": _RESULT,
    "precomp_games.chess:PreparationPolicies": _RESULT,
    "precomp_games.chess:KnownEntries": _RESULT,
    "precomp_games.chess:Repertoire": _RESULT + "; read_repertoire() makes it",
    "precomp_games.chess:RepertoireMenu.entries_batch": "what expansions ask, with states of their own",
    "precomp_games.chess:RepertoirePosition": _RESULT,
    "precomp_games.chess:RepertoireReport": _RESULT,
    "precomp_games.chess:ReplyGames": _RESULT,
    "precomp_games.chess:ReportBook": "what write_report() is told, which checks it",
    "precomp_games.chess:ReportMatch": "what write_report() is told, which checks it",
    "precomp_games.chess:StoreError": _ERROR,
    "precomp_games.chess:WrittenPreparation": _RESULT,
    # models
    "precomp_games:HistoryTree": _RESULT,
    "precomp_games:Menu.entries_batch": "what expansions ask, with states of their own",
    # -- preparation and meta
    "precomp_games.algorithms:AdvantageLines": _RESULT,
    "precomp_games.algorithms:AdvantageSet": _RESULT,
    "precomp_games.algorithms:Alternative": _RESULT,
    "precomp_games.algorithms:BestPrecomputation": _RESULT,
    "precomp_games.algorithms:BookJudgment": _RESULT,
    "precomp_games.algorithms:Holes": _RESULT,
    "precomp_games.algorithms:Lessons": _RESULT,
    "precomp_games.algorithms:CertifiedPrecomputation": _RESULT,
    "precomp_games.algorithms:ConfirmedPrecomputation": _RESULT,
    "precomp_games.algorithms:EveryVisitBook": _RESULT,
    "precomp_games.algorithms:FrontierPoint": _RESULT,
    "precomp_games.algorithms:MemorizedState": _RESULT,
    "precomp_games.algorithms:Decisions": _RESULT + "; against() makes it",
    "precomp_games.algorithms:PlanStep": _RESULT,
    "precomp_games.algorithms:Round": _RESULT,
    "precomp_games.algorithms:Stop": _RESULT,
    "precomp_games.algorithms:StrategyValue": _RESULT,
    "precomp_games.algorithms:MemoryFrontier": _RESULT,
    "precomp_games.algorithms:MetaEquilibrium": _RESULT,
    "precomp_games.algorithms:MetaExploitability": _RESULT,
    "precomp_games.algorithms.lookahead:Commitment": _RESULT,
    "precomp_games.algorithms.lookahead:LookaheadEquilibrium": _RESULT,
    "precomp_games.algorithms.lookahead:LookaheadOutcome": _RESULT,
    "precomp_games.algorithms.lookahead:SequenceForm": _RESULT,
    "precomp_games.algorithms.search:MCTSResult": _RESULT,
    "precomp_games.algorithms.search:MinimaxResult": _RESULT,
    # precomp_games.algorithms.efce
    "precomp_games.algorithms.efce:Blueprint": "a protocol",
    "precomp_games.algorithms.efce:Blueprint.entries": "a protocol's",
    "precomp_games.algorithms.efce:Efce": _RESULT,
    "precomp_games.algorithms.efce:Exploitability": _RESULT,
    "precomp_games.algorithms.efce:LinearProgramError": "an error: made by the library, caught by users",
    "precomp_games.algorithms.efce:PairCounts": _RESULT,
    "precomp_games.algorithms.efce:PureProfile": _RESULT,
    "precomp_games.algorithms.efce:Refinement": _RESULT,
    "precomp_games.algorithms.efce:RefinementProblem": _RESULT + "; Resolving.problem() makes it",
    "precomp_games.algorithms.efce:RegretRefinement": _RESULT,
    "precomp_games.algorithms.efce:RelevantPairs": _RESULT + "; of() makes it",
    "precomp_games.algorithms.efce:Resolving": "made by of(), of_subgames() and deeper()",
    "precomp_games.algorithms.efce:Safety": _RESULT,
    "precomp_games.algorithms.efce:ScaledExtensions": _RESULT + "; of() makes it",
    "precomp_games.algorithms.efce:SequenceGame": _RESULT + "; of() makes it",
}
