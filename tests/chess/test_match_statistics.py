"""Statistics of matches: published values, formulas written out, brute force, coverage and error rates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from precomp_games.chess.play.match_statistics import MatchStatistics, sprt
from precomp_games.commands import main
from tests.properties import examples

COUNTS = st.integers(0, 60) | st.integers(0, 3)
MATCHES = st.tuples(COUNTS, COUNTS, COUNTS).filter(any).map(lambda counts: MatchStatistics(*counts))
ELOS = st.just(0.0) | st.floats(-250.0, 250.0)


def elo_of(score):
    return -400.0 * math.log10(1.0 / score - 1.0)


def score_of(elo):
    return 1.0 / (1.0 + 10.0 ** (-elo / 400.0))


# -- known values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wins", "draws", "losses", "elo", "error"),
    [
        # What cutechess-cli printed: logs of OopsMate, archive/data/results/v16_lazysmp.md.
        (99, 104, 97, 2.3, 31.8),
        (45, 18, 37, 27.9, 62.4),
        # Wordfish, ijccrl.com, August 2025.
        (1571, 1981, 1448, 8.5, 7.5),
        (3225, 3707, 3068, 5.5, 5.4),
    ],
)
def test_differences_and_errors_are_those_that_cutechess_printed(wins, draws, losses, elo, error):
    found = MatchStatistics(wins, draws, losses)
    low, high = found.elo_interval
    assert found.elo == pytest.approx(elo, abs=0.06)
    # There, half the distance of what the ends of the score's interval become.
    assert (high - low) / 2 == pytest.approx(error, rel=0.01, abs=0.06)


@pytest.mark.parametrize(
    ("wins", "draws", "losses", "elo0", "elo1", "llr"),
    [
        # fastchess, app/tests/sprt_test.cpp.
        (21404, 40708, 21184, 0.5, 2.5, -1.57),
        (57433, 106593, 57030, 0.0, 2.0, -2.59),
    ],
)
def test_likelihood_ratios_are_those_that_were_published(wins, draws, losses, elo0, elo1, llr):
    assert MatchStatistics(wins, draws, losses).llr(elo0, elo1) == pytest.approx(llr, abs=0.0051)


@pytest.mark.parametrize(("wins", "elo"), [(50, 0.0), (75, 190.848), (64, 99.955), (24, -200.24)])
def test_the_difference_is_on_the_logistic(wins, elo):
    assert MatchStatistics(wins, 0, 100 - wins).elo == pytest.approx(elo, abs=0.01)


# -- formulas, and brute force -------------------------------------------------------------------------------


@examples(400)
@given(MATCHES)
def test_formulas_written_out(found):
    shares, results = np.array((found.losses, found.draws, found.wins)) / found.games, np.array((0, 0.5, 1))
    score, (low, high) = float(shares @ results), found.elo_interval
    assert found.score == pytest.approx(score)
    if shares.max() == 1.0:
        assert low <= found.elo <= high and low < high
        assert math.isinf(found.elo) == (score in (0.0, 1.0))
        return
    error = math.sqrt((float(shares @ results**2) - score**2) / found.games)
    half = stats.norm.ppf(0.975) * error * (elo_of(score + 1e-6) - elo_of(score - 1e-6)) / 2e-6
    assert found.elo == pytest.approx(elo_of(score))
    assert (low, high) == pytest.approx((elo_of(score) - half, elo_of(score) + half), rel=1e-4, abs=1e-6)


def likelihood(found, elo):
    """Return the greatest logarithm under the hypothesis: its score leaves the share of draws free."""
    score, counts = score_of(elo), np.array((found.losses, found.draws, found.wins))
    most = 2.0 * min(score, 1.0 - score)

    def less(drawn):
        odds = np.array((1.0 - score - drawn / 2, drawn, score - drawn / 2))
        return -float(counts @ np.log(np.maximum(odds, 1e-300)))

    best = optimize.minimize_scalar(less, bounds=(0.0, most), method="bounded", options={"xatol": 1e-12})
    return -min(best.fun, less(0.0), less(most))


@examples(400)
@given(MATCHES, ELOS, ELOS)
def test_likelihood_ratios_by_brute_force_and_from_their_view(found, elo0, elo1):
    """Also of results that were never seen: if all games are lost, the likeliest wins are the fewest."""
    expected = likelihood(found, elo1) - likelihood(found, elo0)
    assert found.llr(elo0, elo1) == pytest.approx(expected, abs=1e-5)
    other = MatchStatistics(found.losses, found.draws, found.wins)
    assert other.llr(-elo0, -elo1) == pytest.approx(found.llr(elo0, elo1), abs=1e-9)
    assert other.llr(-elo1, -elo0) == pytest.approx(-expected, abs=1e-5)
    assert other.elo == pytest.approx(-found.elo)
    assert other.elo_interval == pytest.approx((-found.elo_interval[1], -found.elo_interval[0]))


def test_a_match_is_counted_and_has_a_line():
    scores = [1, 0.5, 0, 1, 0.5, 0.5, 1, 1, 0, 0.5]
    assert MatchStatistics.of_scores(scores) == MatchStatistics(4, 4, 2)
    assert MatchStatistics.of_scores(np.array(scores)).score == 0.6
    assert str(MatchStatistics(0, 10, 0)).startswith("+0 (95 %: -")
    won = str(MatchStatistics(9, 0, 0))
    assert won.startswith("+inf (95 %: +") and "to +inf), 9 won" in won
    with pytest.raises(ValueError, match="expected at least one game, got none"):
        MatchStatistics(0, 0, 0)


# -- the sequential test, and coverage -----------------------------------------------------------------------


@examples(80)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.25, 0.4]), st.floats(5.0, 100.0))
def test_a_test_ends_with_the_game_that_reaches_a_bound(seed, won, elo1):
    scores = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], 400, p=[0.5 - won, 0.5, won])
    found = sprt(scores, 0.0, elo1)
    at = found.games
    whole = MatchStatistics.of_scores(scores[:at]).llr(0.0, elo1)
    before = MatchStatistics.of_scores(scores[: at - 1]).llr(0.0, elo1)
    assert found.llr == pytest.approx(whole) and abs(before) < math.log(19.0)
    assert at == 400 or abs(whole) >= math.log(19.0)
    reached = "H0 accepted" if whole < 0.0 else "H1 accepted"
    assert found.verdict == ("goes on" if abs(whole) < math.log(19.0) else reached)


@pytest.mark.parametrize("true", [0.0, 100.0])
def test_errors_are_as_rare_as_was_asked(true):
    rng, wrong, count = np.random.default_rng(4), 0, 80
    odds = [0.8 - score_of(true), 0.4, score_of(true) - 0.2]
    for _ in range(count):
        found = sprt(rng.choice([0.0, 0.5, 1.0], 3_000, p=odds), 0.0, 100.0)
        assert found.verdict != "goes on"
        wrong += found.verdict == ("H0 accepted" if true else "H1 accepted")
    # Bounds are overshot, and errors rarer for it.
    assert stats.binomtest(wrong, count, 0.05, alternative="greater").pvalue > 0.001
    assert stats.binomtest(wrong, count, 0.02, alternative="less").pvalue > 0.001


@pytest.mark.parametrize("score", [0.5, 0.8, 0.95, 0.99])
def test_intervals_cover(score):
    """All results of 60 games: a third of the points that are lost are lost by draws."""
    odds = np.array((1.0 - 4.0 * (1.0 - score) / 3.0, *2 * [2.0 * (1.0 - score) / 3.0]))
    covered = 0.0
    for wins in range(61):
        for draws in range(61 - wins):
            counts = (wins, draws, 60 - wins - draws)
            if (weight := stats.multinomial.pmf(counts, 60, odds)) > 1e-9:
                low, high = MatchStatistics(*counts).elo_interval
                covered += weight * (low <= elo_of(score) <= high)
    assert 0.93 < covered < 0.99


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("5", "--sprt: expected two Elo differences, such as 0,5, got '5'"),
        ("0,x", "--sprt: expected two Elo differences"),
        ("5,0", "--sprt: expected elo1 to be greater than elo0, 5, got 0"),
        ("0,5,normalized", "--sprt: expected two Elo differences"),
        ("0,nan", "--sprt: expected elo1 to be"),
    ],
)
def test_wrong_tests_are_refused_before_any_work(flag, expected, tmp_path, capsys):
    assert main(["precomp-games", "match", f"--sprt={flag}", f"--output_dir={tmp_path}/out"]) == 1
    assert expected in capsys.readouterr().err and not (tmp_path / "out").exists()
