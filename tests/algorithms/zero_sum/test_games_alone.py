"""Games alone: equilibria, those of all subgames, best responses, and tables, all beside OpenSpiel's."""

import dataclasses
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr, exploitability

from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, RolloutValues, to_efg
from precomp_games._support.files import read_archive, write_archive
from precomp_games.algorithms import (
    best_precomputation,
    best_response,
    load_policy,
    memory_frontier,
    meta_equilibrium,
    meta_exploitability,
    nash_conv,
    restricted_nash,
    save_policy,
    solve,
)
from precomp_games.algorithms.programs import LinearProgramError
from precomp_games.algorithms.zero_sum import double_oracle, refinement
from precomp_games.algorithms.zero_sum.refinement import certified
from precomp_games.algorithms.zero_sum.regret_minimization import CFR_VARIANTS
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.algorithms.zero_sum.solve import METHODS
from tests.oracles import books
from tests.oracles.games import (
    SEEDS,
    SUPPORTS,
    expand,
    games,
    named_by,
    policy_pairs,
    random_efg,
    random_policy,
    sides,
    uniform,
    written,
)
from tests.oracles.zero_sum import (
    SMALL,
    MatrixGame,
    best_response_value,
    constant_sum,
    game_of,
    is_perfect,
    nash_conv_of,
    subgames,
    value_of,
)
from tests.properties import examples

_KUHN = HistoryTree.of_game(pyspiel.load_game("kuhn_poker"))
_NOTHING = 1e-12  # of the range of utilities


def _check(game, refined=True):
    """It has OpenSpiel's value and NashConv; refined, it is an equilibrium of every proper subgame."""
    plain, spread = solve(game), game.max_utility() - game.min_utility()
    assert plain.converged and plain.nash_conv <= _NOTHING * spread
    theirs = nash_conv_of(game, plain.policy())
    assert theirs == pytest.approx(plain.nash_conv, abs=_NOTHING * spread)
    assert plain.value == pytest.approx(value_of(game), abs=1e-9 * spread)
    if not refined:
        return plain
    found, starts = solve(game, refine=True), subgames(game)
    assert found.value == pytest.approx(plain.value, abs=_NOTHING * spread)
    assert found.converged and found.nash_conv <= _NOTHING * spread
    assert plain.refinement is None and found.refinement.subgames == len(starts)
    gap, before = (
        max(nash_conv_of(game, each.policy(), start) for start in starts) for each in (found, plain)
    )
    assert gap <= _NOTHING * spread and found.refinement.gap <= _NOTHING * spread
    measured = certified(plain.tree, plain.strategies).gap
    assert measured == pytest.approx(before, abs=_NOTHING * spread)
    if is_perfect(game):
        assert found.method == "backward induction"
        assert found.refinement.subgames == (found.tree.num_children > 0).sum()
    return found


# Player 2 does not see which way was taken: neither is a game by itself. Below the second one is.
_BLIND = (2, 1, "xy")
_LEAVING = (1, 1, "lr"), (1, 2, "ud"), _BLIND, 1, 0, _BLIND, 1, 0, _BLIND, 0, (2, 2, ["good", "bad"]), -3, 5
# Subgames in those of chance; one in which nobody moves, and some of one player.
_LOTTERY = {"w": "1/2", "l": "1/2"}, 4, -4
_CHANCE = {"a": "1/4", "b": "3/4"}, (2, 1, ["end", "on"]), -1, (1, 2, "wb"), 1, 2, *_LOTTERY
_NOTHING_AT_STAKE = (1, 1, "a"), (2, 1, "cd"), 0, (1, 2, ["only"]), 0


@examples(160)
@given(games(depth=5))
@example(written(*_LEAVING))
@example(written((1, 1, ["out", "in"]), 9, *_CHANCE))
@example(written(*_NOTHING_AT_STAKE))
@example(constant_sum(0.0))
def test_random_games(game):
    _check(game)


@examples(120)
@given(
    st.builds(
        random_efg,
        seed=SEEDS,
        depth=st.integers(4, 5),
        shown=st.sampled_from((0.2, 0.35, 0.5)),
        scale=st.sampled_from((1.0, 1e6, 1e-6)),
    )
)
def test_random_games_with_subgames_in_any_units(game):
    _check(game)


@pytest.mark.parametrize("name", SMALL)
def test_games_of_openspiel(name):
    _check(game_of(name), refined=name != "leduc_poker")


@pytest.mark.parametrize(
    ("name", "count"),
    [("leduc_poker", 1), ("goofspiel(num_cards=4,imp_info=True)", 501), (SMALL[5], 113)],
)
def test_how_many_subgames_there_are(name, count):
    tree = HistoryTree.of_game(game_of(name))
    found = solve(tree, refine=True)
    assert found.refinement.subgames == count
    assert found.refinement.gap <= _NOTHING * tree.utility_range
    if count > 1:  # which refine=True is for
        assert certified(tree, solve(tree).strategies).gap > 0.5 * tree.utility_range


def _rows(found):
    """Return the probabilities at each information state, by number in order of appearance."""
    tree, played = found.tree, np.add(*(s.memorize for s in found.strategies))
    return [part.tolist() for part in np.split(played, tree.first_entry[1:-1])]


@pytest.mark.parametrize(
    ("owner", "payoffs", "odds"),
    [
        (1, (1, -1, -1, 1), (1 / 2, 1 / 2)),
        (2, (3, -1, -1, 1), (1 / 3, 2 / 3)),
        (1, (0, -9, -1, 0), (1 / 10, 9 / 10)),
    ],
)
def test_moves_at_once_that_nobody_comes_to(owner, payoffs, odds):
    """A player leaves rather than play a game of which it hopes for less; that game is played well anyway."""
    up, left = (1, owner % 2 + 1 if owner == 1 else 1, "ud"), (2, 1 if owner == 1 else 2, "lr")
    found = _check(
        written((owner, 1, "lp"), 2 if owner == 1 else -5, up, left, *payoffs[:2], left, *payoffs[2:])
    )
    assert found.refinement.subgames == 2
    rows = _rows(found)
    assert rows[0] == [1.0, 0.0] and rows[1] == pytest.approx(odds, abs=1e-12)


def test_a_subgame_that_begins_with_chance():
    """Miltersen and Sorensen 2010: of 52 cards one is the ace. Player 1 may let player 2 guess, for 1000."""
    guess = (2, 1, ["ace", "other"])
    cards = {"ace": "1/52", "other": "51/52"}
    found = _check(written((1, 1, ["no", "offer"]), 0, cards, guess, -1000, 0, guess, 0, -1000))
    assert found.refinement.subgames == 2
    assert found.value == 0.0 and _rows(found) == [[1.0, 0.0], [0.0, 1.0]]


def test_what_cannot_be_refined(monkeypatch):
    def fails(*_):
        raise LinearProgramError("Unknown")

    with monkeypatch.context() as patch:
        patch.setattr(refinement, "equilibrium_plans", fails)
        with pytest.raises(ValueError, match="expected a game that HiGHS can solve with refine=True"):
            solve("kuhn_poker", refine=True)
    monkeypatch.setattr("precomp_games.algorithms.zero_sum.solve.MOST_OF_GAME", 20)
    with pytest.raises(ValueError, match="expected a game of at most 20 actions with refine=True, got 24"):
        solve("kuhn_poker", refine=True)


# -- methods, results and refusals -----------------------------------------------------------------


def test_constant_sums_single_actions_and_what_never_comes():
    game = constant_sum()
    for method in METHODS:
        found = solve(game, method=method, target_nash_conv=None if method == "exact" else 1e-4)
        assert found.value + solve(game).best_responses[1] == pytest.approx(10.0, abs=1e-3)
        assert found.converged and nash_conv(game, found.policy()) == pytest.approx(found.nash_conv)
    assert solve(game).value == pytest.approx(value_of(constant_sum(0.0)) + 5.0, abs=1e-9)


def test_every_variant_comes_near_and_says_how():
    for method in CFR_VARIANTS:
        found = solve("kuhn_poker", method=method, target_nash_conv=2e-3)
        assert found.converged and found.nash_conv <= 2e-3 and found.method == method
        assert found.iterations == found.trace[-1][0]
        assert found.value == pytest.approx(-1 / 18, abs=2e-3)
    found = solve("leduc_poker", method="cfr", iterations=10**6, seconds=0.05, check_every=5)
    assert found.iterations < 10**6


def test_what_the_result_gives(tmp_path):
    found = solve("kuhn_poker")
    assert repr(found).startswith("Equilibrium(kuhn_poker(), value=-0.05555555556, nash_conv=")
    assert found.exploitability == found.nash_conv / 2.0
    for player in (0, 1):
        plan = found.realization_plan(player)
        assert plan.shape == (1, found.tree.num_entries) and plan.nnz < found.tree.num_entries
        np.testing.assert_array_equal(plan.toarray()[0], found.strategies[player].realization_plan())
    assert found.tree.entry_action.tolist() == [0, 1] * found.tree.num_infosets
    frame = found.to_frame()
    assert list(frame.columns) == ["player", "infoset", "action", "probability", "plan"]
    assert (frame.groupby(["player", "infoset"]).probability.sum().round(12) == 1.0).all()
    found.tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert loaded.same_as(found.tree) and loaded.penalties == (0.0, 0.0) and not loaded.may_stop
    assert solve(loaded).value == found.value


@pytest.mark.parametrize("too", ["large", "hard"])
def test_where_there_is_no_program_regret_minimization_takes_over(too, monkeypatch):
    def fails(*_):
        raise LinearProgramError("Unknown")

    if too == "hard":
        monkeypatch.setattr(double_oracle, "equilibrium_plans", fails)
    else:
        monkeypatch.setattr(double_oracle, "MOST_OF_GAME", 20)
    found = solve("kuhn_poker")
    assert found.method == "pdcfr+" and found.iterations == 1000
    assert found.nash_conv < 1e-11 and found.converged == (found.nash_conv <= 1e-12 * 4.0)


def test_battleship_whose_program_is_degenerate():
    """With utilities of millions beside plans of ones, the simplex method did not end."""
    small = "board_width=2,board_height=2,ship_sizes=[1;1],ship_values=[1.0;1.0],num_shots=2"
    found = solve(f"battleship({small},allow_repeated_shots=False,loss_multiplier=1.0)")
    assert found.converged and found.value == pytest.approx(1 / 12) and found.method == "linear program"


def test_penalties_are_no_price_of_the_game_alone():
    """The lemma: at next to no price, with a menu of all actions, the meta-game is the game."""
    game = pyspiel.load_game("kuhn_poker")
    prepared = HistoryTree.from_game(game, sigma_pre=Menu.of_actions(), sigma=uniform, penalties=1e-9)
    assert meta_equilibrium(prepared).value == pytest.approx(solve(game).value, abs=1e-7)
    assert meta_equilibrium(_KUHN).value == solve(_KUHN).value


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("nodes", "value"), [((1,), 1.0), (({"a": "0.25", "b": "0.75"}, 4, -4), -2.0)])
def test_where_nobody_moves_or_one_player_only(nodes, value, method):
    game = written(*nodes)
    found = solve(game, method=method)
    assert found.value == value and found.nash_conv == 0.0 and not found.policy().state_lookup
    assert nash_conv(game, uniform) == 0.0 and best_response(game, uniform, 1).value == -value
    assert solve(pyspiel.load_efg_game(to_efg(game))).value == value
    one = written((2, 1, "xyz"), 3, -1, 2)
    assert solve(one, method=method, target_nash_conv=None).value == pytest.approx(-1.0, abs=0.02)


_FALSE = [[(3, -9), (0, 5)], [(1, 0), (2, 1)]]
_LONG = np.stack([np.arange(33000.0), -np.arange(33000.0)], axis=-1)[:, np.newaxis]


def _ending_in(odd):
    return solve(MatrixGame([[(odd, -odd), (0, 0)]]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: solve(_KUHN, seconds=1.0), 'with method="exact"'),
        (
            lambda: solve(_KUHN, method="cfr", refine=True),
            r'^solve\(\): .*method="exact" with refine=True, got',
        ),
        (lambda: _KUHN.with_penalties(0.5), "game alone"),
        (lambda: restricted_nash(_KUHN, 0, model_probability=0.5), "game alone"),
        (lambda: meta_sequence_form_lp(_KUHN), "game alone"),
        (lambda: memory_frontier(_KUHN, 0, opponent=solve(_KUHN).strategies[1]), "game alone"),
        (lambda: best_precomputation(_KUHN, 0), "a tree with policies that are computed during play"),
        (lambda: MetaPrecomputationGame(_KUHN), "expected a tree"),
        (lambda: solve("kuhn_pokr"), r"did you mean kuhn_poker"),
        (lambda: solve(5), r"solve\(\): expected a pyspiel.Game, got 5"),
        (lambda: solve("kuhn_poker(players=3)"), "expected a two-player game"),
        (lambda: solve("kuhn_poker", iterations=5), 'expected no iterations with method="exact"'),
        (lambda: solve("liars_dice_ir(dice_sides=3)"), "perfect recall"),
        # Games whose declarations are false, and entries are int16: more of them once were taken for others.
        (lambda: solve(MatrixGame(_FALSE)), r"add up to 0.* got 3\.0 and -9\.0 at history '0, 0'"),
        (lambda: _ending_in(math.nan), "from -1 to 1, .* got nan and nan"),
        (lambda: _ending_in(math.inf), "a finite range of"),
        (lambda: solve(MatrixGame(_LONG)), "at most 32768 entries on a menu, got 33000"),
    ],
)
def test_what_a_game_alone_is_not(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_crafted_trees(tmp_path):
    turns, numbers = np.flatnonzero(_KUHN.infoset >= 0), np.arange(_KUHN.num_histories)
    for changed in (
        {"sigma_pre": _KUHN.sigma_pre * 0.5},
        {"sigma": np.where(_KUHN.player[_KUHN.parent] >= 0, 0.5, _KUHN.sigma)},
        {"infoset": np.where(numbers == turns[0], -1, _KUHN.infoset).astype(np.int32)},
        {"action": np.where(_KUHN.parent == turns[-1], _KUHN.action + 1, _KUHN.action).astype(np.int32)},
        {"infoset_keys": None},
        {"utility_sum": math.nan},
        {"utility_range": math.inf},
    ):
        dataclasses.replace(_KUHN, **changed).save(tmp_path / "tree.npz")
        with pytest.raises(ValueError, match=r"expected a file written by HistoryTree\.save"):
            HistoryTree.load(tmp_path / "tree.npz")


# -- best responses, policies and their files --------------------------------------------------------


@examples(400)
@given(games() | games("imperfect", general=True), SEEDS, st.sampled_from(SUPPORTS))
@example(game_of("matrix_pd"), 1, "full")
@example(game_of("tiny_hanabi"), 1, "full")
def test_responses_and_nash_conv_are_openspiels(game, seed, support):
    """Of general sum as well."""
    ask, start = random_policy(seed, support, named_by(game)), game.new_initial_state()
    policy, tree, near = books.AsPolicy(game, ask), HistoryTree.of_game(game), {"abs": 1e-11}
    best = [best_response_value(game, policy, player) for player in (0, 1)]
    gains = [best[i] - books.play_value(start, (ask, ask), i) for i in (0, 1)]
    assert nash_conv(tree, ask) == pytest.approx(sum(gains), **near)
    for player in (0, 1):
        found = best_response(tree, ask, player)
        assert found.value == pytest.approx(best[player], **near)
        answer = found.policy().action_probabilities
        assert books.play_value(start, (answer, answer), player) == pytest.approx(best[player], **near)


def test_every_kind_of_policy_is_asked_once():
    game, asked = pyspiel.load_game("leduc_poker"), []
    solver, own = pyspiel.CFRSolver(game), cfr.CFRSolver(game)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    average, tabular = solver.average_policy(), solver.tabular_average_policy()
    expected, tree = pyspiel.nash_conv(game, tabular), HistoryTree.of_game(game)

    def ask(states):
        asked.append(len(states))
        return [average.action_probabilities(state) for state in states]

    batches = SimpleNamespace(action_probabilities_batch=ask)  # as a network answers
    for policy in (average, tabular, batches, average.action_probabilities, (average, tabular)):
        assert nash_conv(tree, policy) == pytest.approx(expected, abs=1e-12)
    assert len(asked) == 2 and sum(asked) == tree.num_infosets
    own.evaluate_and_update_policy()
    python = own.average_policy()
    theirs = openspiel_policy.python_policy_to_pyspiel_policy(python)
    assert nash_conv(tree, theirs) == pytest.approx(nash_conv(tree, python))
    best = best_response(tree, (batches, tabular), 0).value
    assert best == pytest.approx(best_response_value(game, tabular, 0)) and len(asked) == 2  # not asked
    assert nash_conv("leduc_poker", tabular) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_tables_and_their_files(name, tmp_path):
    game = game_of(name)
    table = solve(game).policy()
    theirs = openspiel_policy.TabularPolicy(game)
    assert table.state_lookup.keys() == theirs.state_lookup.keys()
    rows = [table.state_lookup[key] for key in theirs.state_lookup]
    np.testing.assert_array_equal(table.legal_actions_mask[rows], theirs.legal_actions_mask)
    save_policy(table, tmp_path / "policy.npz")
    for loaded in (load_policy(tmp_path / "policy.npz"), pickle.loads(pickle.dumps(table))):
        assert loaded.states_per_player == table.states_per_player
        np.testing.assert_array_equal(loaded.action_probability_array, table.action_probability_array)
        assert exploitability.nash_conv(game, loaded) == exploitability.nash_conv(game, table)
    save_policy(theirs, tmp_path / "uniform.npz")
    assert nash_conv(game, load_policy(tmp_path / "uniform.npz", game)) == nash_conv(game, theirs)


def test_where_chance_never_goes_all_actions_are_alike(tmp_path):
    game = constant_sum()
    table = solve(game).policy()
    never = game.new_initial_state().child(2)
    assert table.action_probabilities(never) == {0: 1.0}
    save_policy(table, tmp_path / "policy.npz")
    with pytest.raises(ValueError, match="expected a game"):
        load_policy(tmp_path / "policy.npz")
    assert nash_conv(game, load_policy(tmp_path / "policy.npz", game)) <= 1e-12


def test_players_whose_information_states_have_one_name_are_kept_apart(tmp_path):
    """OpenSpiel's own tables would give both the row of one."""
    game = MatrixGame([[(1, -1), (-1, 1)], [(-1, 1), (1, -1)]], name="nothing")
    found = solve(game)
    assert found.value == pytest.approx(0.0, abs=1e-12) and found.tree.num_infosets == 2
    plays = {0: {0: 1.0, 1: 0.0}, 1: {0: 0.0, 1: 1.0}}
    table = best_response(game, (lambda _: plays[0], lambda _: plays[1]), 1).policy()
    start = game.new_initial_state()
    assert table.action_probabilities(start) == plays[0]
    assert table.action_probabilities(start.child(0)) == plays[1]
    assert nash_conv(game, table) == pytest.approx(2.0)
    save_policy(table, tmp_path / "policy.npz")
    loaded = load_policy(tmp_path / "policy.npz", game)
    assert loaded.action_probabilities(start.child(0)) == plays[1]
    assert loaded.states_per_player == [["player 0: nothing"], ["player 1: nothing"]]


_TABLE = openspiel_policy.TabularPolicy(pyspiel.load_game("kuhn_poker"))


def _changed(*rows):
    """Return a table with other rows at its fourth information state."""
    table = _TABLE.__copy__()
    table.action_probability_array[3] = rows
    return table


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda state: {0: 0.7}, r"nash_conv\(\): expected the probabilities of policy to sum to 1"),
        (openspiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker")), "to know information state"),
        (pyspiel.TabularPolicy({"0": [(0, 1.0)]}), "to know information state"),
        (_changed(0.7, 0.7), "a distribution over legal actions"),
        (_changed(1.5, -0.5), r"at '1pb', got \[1\.5, -0\.5\]"),
    ],
)
def test_wrong_policies(policy, words):
    with pytest.raises(ValueError, match=words):
        nash_conv("kuhn_poker", policy)


def test_wrong_files_of_policies(tmp_path):
    path, game = tmp_path / "policy.npz", pyspiel.load_game("kuhn_poker")
    with pytest.raises(ValueError, match="expected policy"):
        save_policy(lambda state: {}, path)
    save_policy(solve(game).policy(), path)
    with pytest.raises(ValueError, match="expected a policy of leduc_poker"):
        load_policy(path, pyspiel.load_game("leduc_poker"))
    data = path.read_bytes()
    head, arrays = read_archive(path, ("start", "action", "probability"))
    wraps = np.array([0, 2**63 - 1, -2, *range(5, 24, 2), 24])[: len(arrays["start"])]
    for heads, changed, words in (
        ({}, {"start": wraps}, r"a file written by save_policy|expected actions below"),
        ({}, {"start": arrays["start"][::-1].copy()}, "a file written by save_policy"),
        ({}, {"action": arrays["action"] + 10**6}, r"a file written by save_policy|expected actions below"),
        ({}, {"probability": arrays["probability"] * np.nan}, "a file written by save_policy"),
        ({"format": "another"}, {}, "a file written by save_policy"),
        ({"game": "leduc_poker(players=3)"}, {}, "expected game, since that of the file does not serve"),
    ):
        kinds = {name: value.astype(arrays[name].dtype) for name, value in changed.items()}
        write_archive(path, dict(head) | heads, arrays | kinds)
        with pytest.raises(ValueError, match=words):
            load_policy(path)
    HistoryTree.of_game(game).save(path)
    for cut in (path.read_bytes(), *(data[:n] for n in (0, 10, len(data) // 2, len(data) - 1))):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match=r"expected a file written by save_policy\(\)"):
            load_policy(path)


# -- games of general sum --------------------------------------------------------------------------


@examples(160)
@given(games("imperfect", general=True) | games("imperfect", general=True, lottery=True), SEEDS)
def test_gambits_format_and_files_keep_games_of_general_sum(tmp_path_factory, game, seed):
    tree, ask = HistoryTree.of_game(game), random_policy(seed, "full", "infoset")
    again = HistoryTree.of_game(pyspiel.load_efg_game(to_efg(tree)))
    for name in ("parent", "player", "infoset", "value", "value_1"):
        np.testing.assert_array_equal(getattr(again, name), getattr(tree, name))
    np.testing.assert_allclose(again.sigma, tree.sigma, rtol=1e-15)  # what is written sums to 1 exactly
    path = tmp_path_factory.mktemp("trees") / "tree.npz"
    tree.save(path)
    loaded = HistoryTree.load(path)
    assert loaded.fingerprint == tree.fingerprint
    assert nash_conv(loaded.with_game(game), ask) == nash_conv(tree, ask)


def _general(seed):
    return random_efg(seed, depth=3 + seed % 3, actions=2 + seed % 2, lottery=seed % 5 == 4, general=True)


@pytest.mark.parametrize("seed", range(8))
def test_gambit_reads_them(seed, tmp_path):
    gambit = pytest.importorskip("pygambit")
    (tmp_path / "game.efg").write_text(to_efg(_general(seed)))
    game = gambit.read_efg(str(tmp_path / "game.efg"))
    assert game.is_perfect_recall and not game.is_const_sum


@pytest.mark.parametrize("player", [0, 1])
def test_other_leaf_values_are_the_own_utility_as_well(player):
    game, (pre, sigma) = _general(6), policy_pairs(6, "partial", "infoset")
    start, most = game.new_initial_state(), game.max_utility()
    penalties = sides(player, 100.0, math.inf)
    expected = books.play_value(start, sigma, player)
    for leaf_value, slack in (("exact", 1e-12), (RolloutValues(games=20_000), 0.1), (lambda s: most, 0.0)):
        tree = expand(game, pre, sigma, penalties, leaf_value=leaf_value)
        wanted = expected if slack else most
        assert best_precomputation(tree, player).value == pytest.approx(wanted, abs=slack)


@pytest.mark.parametrize(
    "call",
    [
        lambda alone, _: solve(alone.game),
        lambda alone, _: solve(alone),
        lambda alone, _: meta_equilibrium(alone),
        lambda _, prepared: meta_equilibrium(prepared),
        lambda _, prepared: meta_exploitability(prepared, ()),
        lambda _, prepared: MetaPrecomputationGame(prepared),
        lambda _, prepared: to_efg(prepared),
    ],
)
def test_what_needs_a_constant_sum_says_what_does_not(call):
    game, (pre, sigma) = _general(2), policy_pairs(2, "full", "infoset")
    words = "a zero-sum or constant-sum game, got .*; those of any sum are for best_response"
    with pytest.raises(ValueError, match=words):
        call(HistoryTree.of_game(game), expand(game, pre, sigma, (0.1, math.inf)))


def test_damaged_files_and_other_games():
    tree = HistoryTree.of_game(_general(1))
    for name, value in (("value_1", np.full_like(tree.value, np.nan)), ("value_of", 1), ("value_of", 2)):
        with pytest.raises(ValueError, match=name):
            dataclasses.replace(tree, **{name: value}).check()
    with pytest.raises(ValueError, match="is not the same there"):
        tree.with_game(random_efg(1, depth=4, actions=3))
    assert tree.with_game(_general(1)).same_as(tree)
