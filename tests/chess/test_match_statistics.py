"""Statistics of matches: published values, formulas written out, brute force, coverage and error rates."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from precomp_games.chess.play.match_statistics import MatchStatistics, sprt
from precomp_games.commands import main


def elo_of(score):
    return -400.0 * math.log10(1.0 / score - 1.0)


def made_up(count, *, seed=0):
    """Results of matches, with few games in some."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        counts = rng.multinomial(rng.integers(1, 60), rng.dirichlet(np.full(3, 0.6)))
        yield MatchStatistics(*map(int, counts))


def shares_of(found):
    """Shares of losses, draws and wins, and the scores of these."""
    return np.array((found.losses, found.draws, found.wins)) / found.games, np.linspace(0.0, 1.0, 3)


# -- known values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wins", "elo"), [(50, 0.0), (75, 190.848), (64, 99.955), (24, -200.24)])
def test_the_difference_is_on_the_logistic(wins, elo):
    assert MatchStatistics(wins, 0, 100 - wins).elo == pytest.approx(elo, abs=0.01)
    assert MatchStatistics(0, 10, 0).elo == 0.0


@pytest.mark.parametrize(
    ("wins", "losses", "draws", "elo", "error"),
    [
        # What cutechess-cli printed: logs of OopsMate, archive/data/results/v16_lazysmp.md.
        (99, 97, 104, 2.3, 31.8),
        (45, 37, 18, 27.9, 62.4),
        # Wordfish, ijccrl.com, August 2025.
        (1571, 1448, 1981, 8.5, 7.5),
        (3225, 3068, 3707, 5.5, 5.4),
    ],
)
def test_what_cutechess_printed(wins, losses, draws, elo, error):
    found = MatchStatistics(wins, draws, losses)
    low, high = found.elo_interval
    assert found.elo == pytest.approx(elo, abs=0.06)
    # There, half the distance of what the ends of the score's interval become.
    assert (high - low) / 2 == pytest.approx(error, rel=0.01, abs=0.06)


@pytest.mark.parametrize(
    ("found", "elo0", "elo1", "llr"),
    [
        # fastchess, app/tests/sprt_test.cpp.
        (MatchStatistics(21404, 40708, 21184), 0.5, 2.5, -1.57),
        (MatchStatistics(57433, 106593, 57030), 0.0, 2.0, -2.59),
    ],
)
def test_published_likelihood_ratios(found, elo0, elo1, llr):
    assert found.llr(elo0, elo1) == pytest.approx(llr, abs=0.0051)


# -- formulas, and brute force -------------------------------------------------------------------------------


def test_formulas_written_out(cases):
    for found in made_up(cases(50)):
        shares, results = shares_of(found)
        score = float(shares @ results)
        error = math.sqrt(max(float(shares @ results**2) - score**2, 0.0) / found.games)
        assert found.score == pytest.approx(score)
        if shares.max() == 1.0:
            low, high = found.elo_interval
            assert low <= found.elo <= high and low < high
            assert math.isinf(found.elo) == (score in (0.0, 1.0))
            continue
        slope = (elo_of(score + 1e-6) - elo_of(score - 1e-6)) / 2e-6
        half = stats.norm.ppf(0.975) * error * slope
        assert found.elo == pytest.approx(elo_of(score))
        assert found.elo_interval == pytest.approx((elo_of(score) - half, elo_of(score) + half), rel=1e-4)


def likelihood(found, elo):
    """Return the greatest logarithm under the hypothesis, by a general solver from several starts."""
    shares, results = shares_of(found)
    goal = 1.0 / (1.0 + 10.0 ** (-elo / 400.0))

    def missed(p):
        return p @ results - goal

    def less(p):
        return -float(shares @ np.log(np.maximum(p, 1e-12)))

    best = -math.inf
    for seed in range(2):
        found_here = optimize.minimize(
            less,
            np.random.default_rng(seed).dirichlet(np.ones(len(results))),
            bounds=[(0.0, 1.0)] * len(results),
            constraints=[
                {"type": "eq", "fun": missed},
                {"type": "eq", "fun": lambda p: p.sum() - 1.0},
            ],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        if found_here.success and abs(missed(found_here.x)) < 1e-8:
            best = max(best, -found_here.fun * found.games)
    return best


def test_likelihood_ratios_by_brute_force(cases):
    rng = np.random.default_rng(1)
    for found in made_up(cases(50), seed=2):
        elo0, elo1 = rng.uniform(-250.0, 250.0, 2) * rng.integers(0, 3, 2) / 2
        expected = likelihood(found, elo1) - likelihood(found, elo0)
        assert found.llr(elo0, elo1) == pytest.approx(expected, abs=1e-5)
        assert found.llr(elo1, elo0) == pytest.approx(-expected, abs=1e-5)


def test_results_that_were_never_seen():
    """If all games are won, the likeliest losses under a score below 1 are all that it leaves."""
    assert MatchStatistics(30, 0, 0).llr(0.0, 100.0) == pytest.approx(
        30 * math.log(2.0 / (1.0 + 10.0**-0.25))
    )
    assert MatchStatistics(0, 30, 0).llr(0.0, 5.0) < 0.0 < MatchStatistics(3, 0, 0).llr(0.0, 5.0)
    # All drawn: those that are not are won, for a score above one half.
    score = 1.0 / (1.0 + 10.0**-0.25)
    assert MatchStatistics(0, 30, 0).llr(0.0, 100.0) == pytest.approx(30 * math.log(2.0 * (1.0 - score)))


def test_our_view_and_theirs(cases):
    for found in made_up(cases(20), seed=3):
        other = MatchStatistics(found.losses, found.draws, found.wins)
        assert other.elo == pytest.approx(-found.elo)
        low, high = found.elo_interval
        assert other.elo_interval == pytest.approx((-high, -low))
        assert other.llr(20.0, -50.0) == pytest.approx(found.llr(-20.0, 50.0), abs=1e-9)


# -- games ---------------------------------------------------------------------------------------------------


def test_games_and_their_line():
    scores = [1, 0.5, 0, 1, 0.5, 0.5, 1, 1, 0, 0.5]
    assert MatchStatistics.of_scores(scores) == MatchStatistics(4, 4, 2)
    assert MatchStatistics.of_scores(np.array(scores)).score == 0.6
    assert str(MatchStatistics(0, 10, 0)).startswith("+0 (95 %: -")
    assert str(MatchStatistics(9, 0, 0)).startswith("+inf (95 %: +") and "to +inf), 9 won" in str(
        MatchStatistics(9, 0, 0)
    )
    with pytest.raises(ValueError, match="expected at least one game, got none"):
        MatchStatistics(0, 0, 0)


# -- the sequential test, and coverage -----------------------------------------------------------------------


def test_a_test_ends_with_the_game_that_reaches_a_bound():
    scores = np.random.default_rng(0).choice([0.0, 0.5, 1.0], 400, p=[0.1, 0.5, 0.4])
    found = sprt(scores, 0.0, 50.0)
    assert found.verdict == "H1 accepted" and found.games < 400
    at = found.games
    whole = MatchStatistics.of_scores(scores[:at]).llr(0.0, 50.0)
    before = MatchStatistics.of_scores(scores[: at - 1]).llr(0.0, 50.0)
    assert found.llr == pytest.approx(whole) and whole >= math.log(19.0) > before
    assert sprt(scores[: at - 1], 0.0, 50.0).verdict == "goes on"
    assert sprt(1.0 - scores, 0.0, 50.0).verdict == "H0 accepted"


@pytest.mark.parametrize("true", [0.0, 100.0])
def test_errors_are_as_rare_as_was_asked(true, cases):
    rng, wrong, count = np.random.default_rng(4), 0, cases(300)
    score = 1.0 / (1.0 + 10.0 ** (-true / 400.0))
    odds = [1.0 - score - 0.2, 0.4, score - 0.2]
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
    draw, lost = 2.0 * (1.0 - score) / 3.0, 2.0 * (1.0 - score) / 3.0
    covered = 0.0
    for wins in range(61):
        for draws in range(61 - wins):
            counts = (wins, draws, 60 - wins - draws)
            log = math.lgamma(61.0) - sum(math.lgamma(n + 1.0) for n in counts)
            odds = (1.0 - draw - lost, draw, lost)
            weight = math.exp(log + sum(n * math.log(p) for n, p in zip(counts, odds, strict=True)))
            if weight < 1e-9:
                continue
            found = MatchStatistics(*counts)
            low, high = found.elo_interval
            covered += weight * (low <= elo_of(score) <= high)
    assert 0.93 < covered < 0.99


# -- the command ---------------------------------------------------------------------------------------------


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
