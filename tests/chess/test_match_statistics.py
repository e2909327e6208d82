"""Statistics of matches: published values, formulas written out, brute force, coverage and error rates."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from precomp_games.chess import MatchStatistics, sprt
from precomp_games.commands import match

NORMALIZED = 800.0 / math.log(10.0)


def of_pairs(*pairs):
    """By pairs alone, where a pair with a point is won and lost; `draws` is right without any drawn pair."""
    ll, ld, middle, dw, ww = pairs
    return MatchStatistics(2 * ww + dw + middle, ld + dw, 2 * ll + ld + middle, pairs)


def elo_of(score):
    return -400.0 * math.log10(1.0 / score - 1.0)


def made_up(count, *, seed=0):
    """Results of matches, with pairs and without, and few games in some."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        kinds = 5 if number % 2 else 3
        counts = rng.multinomial(rng.integers(1, 60), rng.dirichlet(np.full(kinds, 0.6)))
        losses, draws, wins = counts if kinds == 3 else (0, 0, 0)
        yield (
            of_pairs(*counts.tolist()) if kinds == 5 else MatchStatistics(int(wins), int(draws), int(losses))
        )


def results_of(found):
    """(how many, which share, score from 0 to 1) of each independent result."""
    counts = (found.losses, found.draws, found.wins) if found.pairs is None else found.pairs
    return sum(counts), np.array(counts) / sum(counts), np.linspace(0.0, 1.0, len(counts))


# -- known values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wins", "elo"), [(50, 0.0), (75, 190.848), (64, 99.955), (24, -200.24)])
def test_the_difference_is_on_the_logistic(wins, elo):
    assert MatchStatistics(wins, 0, 100 - wins).elo == pytest.approx(elo, abs=0.01)
    assert MatchStatistics(0, 10, 0).elo == 0.0


@pytest.mark.parametrize(
    ("wins", "losses", "draws", "elo", "error", "los", "draw_ratio"),
    [
        # What cutechess-cli printed: logs of OopsMate, archive/data/results/v16_lazysmp.md.
        (99, 97, 104, 2.3, 31.8, 0.557, 0.347),
        (45, 37, 18, 27.9, 62.4, 0.812, 0.180),
        # Wordfish, ijccrl.com, August 2025.
        (1571, 1448, 1981, 8.5, 7.5, 0.987, 0.396),
        (3225, 3068, 3707, 5.5, 5.4, 0.976, 0.371),
    ],
)
def test_what_cutechess_printed(wins, losses, draws, elo, error, los, draw_ratio):
    found = MatchStatistics(wins, draws, losses)
    low, high = found.elo_interval
    assert found.elo == pytest.approx(elo, abs=0.06)
    # There, half the distance of what the ends of the score's interval become.
    assert (high - low) / 2 == pytest.approx(error, rel=0.01, abs=0.06)
    assert (found.los, found.draw_ratio) == pytest.approx((los, draw_ratio), abs=0.0006)


# fastchess, app/tests/elo_test.cpp, and a match on ijccrl.com; fishtest's formulas.
@pytest.mark.parametrize(
    ("found", "elo", "error", "normalized", "normalized_error", "los"),
    [
        (MatchStatistics(76, 123, 89), None, None, -20.76, 40.13, 0.1553),
        (MatchStatistics(136, 111, 96), None, None, 49.77, 36.77, 0.9960),
        (of_pairs(34, 54, 63, 64, 75), 55.58, 27.65, 57.94, 28.28, 1.0),
        (of_pairs(332, 433, 498, 333, 334), -8.64, 10.33, -9.17, 10.96, 0.0505),
        (of_pairs(5, 109, 748, 134, 4), 4.00, 5.68, 10.71, 15.23, 0.9159),
    ],
)
def test_what_fastchess_has(found, elo, error, normalized, normalized_error, los):
    if elo is not None:
        assert found.elo == pytest.approx(elo, abs=0.006)
        assert found.elo_interval[1] - found.elo == pytest.approx(error, rel=0.01)
    assert found.normalized_elo == pytest.approx(normalized, abs=0.006)
    # Theirs lacks what the error of the deviation adds: 3 % in the third match.
    half = found.normalized_elo_interval[1] - found.normalized_elo
    assert half == pytest.approx(normalized_error, rel=0.04)
    assert found.los == pytest.approx(los, abs=0.001)


@pytest.mark.parametrize(
    ("found", "elo0", "elo1", "model", "llr"),
    [
        # fastchess, app/tests/sprt_test.cpp.
        (MatchStatistics(21404, 40708, 21184), 0.5, 2.5, "logistic", -1.57),
        (MatchStatistics(57433, 106593, 57030), 0.0, 2.0, "logistic", -2.59),
        (of_pairs(223, 9863, 21279, 10037, 246), 0.5, 2.5, "logistic", -3.07),
        (of_pairs(871, 26175, 55983, 26678, 821), 0.0, 2.0, "logistic", -4.98),
        (MatchStatistics(36433, 68692, 36027), 0.0, 2.0, "normalized", 0.92),
        (MatchStatistics(10871, 20431, 10650), -1.75, 0.25, "normalized", 2.30),
        (of_pairs(365, 16618, 36229, 16974, 390), 0.0, 2.0, "normalized", 2.25),
        (of_pairs(127, 4883, 10712, 5150, 104), -1.75, 0.25, "normalized", 3.01),
        # racetrack, src/tests/sprt_tests.rs.
        (of_pairs(440, 2910, 5170, 2888, 455), 0.0, 5.0, "normalized", -2.27),
        (of_pairs(142, 620, 1122, 699, 188), 0.0, 5.0, "normalized", 2.99),
        (of_pairs(349, 1561, 3340, 1604, 359), -5.0, 0.0, "normalized", 2.90),
        (of_pairs(98, 382, 674, 369, 71), -5.0, 0.0, "normalized", -1.11),
        # "Exact" values of a page of fishtest's kind: montytest, test 69d3c8dc7c5b3724e29d2712.
        (of_pairs(13, 37, 50, 25, 3), 0.0, 4.0, "normalized", -0.54912),
        (of_pairs(13, 37, 50, 25, 3), 0.0, 2.7156, "logistic", -0.53772),
    ],
)
def test_published_likelihood_ratios(found, elo0, elo1, model, llr):
    digits = 0.00005 if round(llr, 2) != llr else 0.0051
    assert found.llr(elo0, elo1, model) == pytest.approx(llr, abs=digits)


# -- formulas, and brute force -------------------------------------------------------------------------------


def test_formulas_written_out(cases):
    for found in made_up(cases(50)):
        size, shares, results = results_of(found)
        score = float(shares @ results)
        variance = float(shares @ results**2) - score**2
        error = math.sqrt(max(variance, 0.0) / size)
        assert found.score == pytest.approx(score)
        squares = float(shares @ (results - 0.5) ** 2) * size
        z = (score - 0.5) * size / math.sqrt(squares) if squares else 0.0
        assert found.los == pytest.approx(float(stats.norm.cdf(z)))
        if shares.max() == 1.0:
            low, high = found.elo_interval
            assert low <= found.elo <= high and low < high
            assert math.isinf(found.elo) == (score in (0.0, 1.0))
            assert found.normalized_elo_interval == (-math.inf, math.inf)
            continue
        slope = (elo_of(score + 1e-6) - elo_of(score - 1e-6)) / 2e-6
        half = stats.norm.ppf(0.975) * error * slope
        assert found.elo == pytest.approx(elo_of(score))
        assert found.elo_interval == pytest.approx((elo_of(score) - half, elo_of(score) + half), rel=1e-4)
        per_game = math.sqrt(variance * (1 if found.pairs is None else 2))
        assert found.normalized_elo == pytest.approx(NORMALIZED * (score - 0.5) / per_game)


def t_of(shares, results):
    mean = shares @ results
    return (mean - 0.5) / math.sqrt(shares @ (results - mean) ** 2)


def likelihood(found, elo, model):
    """The greatest logarithm under the hypothesis, by a general solver from several starts."""
    size, shares, results = results_of(found)
    if model == "logistic":
        t = None
        goal = 1.0 / (1.0 + 10.0 ** (-elo / 400.0))
    else:
        t = elo / NORMALIZED * (1.0 if found.pairs is None else math.sqrt(2.0))

    def missed(p):
        mean = p @ results
        if t is None:
            return mean - goal
        return mean - 0.5 - t * math.sqrt(max(p @ (results - mean) ** 2, 1e-300))

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
            best = max(best, -found_here.fun * size)
    return best


@pytest.mark.parametrize("model", ["logistic", "normalized"])
def test_likelihood_ratios_by_brute_force(model, cases):
    rng = np.random.default_rng(1)
    for found in made_up(cases(50), seed=2):
        elo0, elo1 = rng.uniform(-250.0, 250.0, 2) * rng.integers(0, 3, 2) / 2
        expected = likelihood(found, elo1, model) - likelihood(found, elo0, model)
        assert found.llr(elo0, elo1, model) == pytest.approx(expected, abs=1e-5)
        assert found.llr(elo1, elo0, model) == pytest.approx(-expected, abs=1e-5)


def test_results_that_were_never_seen():
    """Where all games are won, the likeliest loser's share is all that a score below 1 leaves."""
    assert MatchStatistics(30, 0, 0).llr(0.0, 100.0) == pytest.approx(
        30 * math.log(2.0 / (1.0 + 10.0**-0.25))
    )
    for model in ("logistic", "normalized"):
        assert (
            MatchStatistics(0, 30, 0).llr(0.0, 5.0, model)
            < 0.0
            < MatchStatistics(3, 0, 0).llr(0.0, 5.0, model)
        )
    # All drawn: those that are not are won, for a score above one half.
    score = 1.0 / (1.0 + 10.0**-0.25)
    assert MatchStatistics(0, 30, 0).llr(0.0, 100.0) == pytest.approx(30 * math.log(2.0 * (1.0 - score)))


def test_our_view_and_theirs(cases):
    for found in made_up(cases(20), seed=3):
        other = MatchStatistics(found.losses, found.draws, found.wins, found.pairs and found.pairs[::-1])
        assert other.elo == pytest.approx(-found.elo) and other.los == pytest.approx(1.0 - found.los)
        low, high = found.elo_interval
        assert other.elo_interval == pytest.approx((-high, -low))
        for model in ("logistic", "normalized"):
            llr = found.llr(-20.0, 50.0, model)
            assert other.llr(20.0, -50.0, model) == pytest.approx(llr, abs=1e-9)


# -- games ---------------------------------------------------------------------------------------------------


def test_games_and_pairs():
    scores = [1, 0.5, 0, 1, 0.5, 0.5, 1, 1, 0, 0.5]
    assert MatchStatistics.of_scores(scores) == MatchStatistics(4, 4, 2)
    found = MatchStatistics.of_scores(np.array(scores), paired=True)
    assert found == MatchStatistics(4, 4, 2, (0, 1, 2, 1, 1)) and found.score == 0.6
    assert str(MatchStatistics(0, 10, 0)).startswith("+0 (95 %: -")
    assert str(MatchStatistics(9, 0, 0)).startswith("+inf (95 %: +") and "to +inf), 9 won" in str(
        MatchStatistics(9, 0, 0)
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((0, 0, 0), "expected at least one game, got none"),
        ((1, 0, 0, (0, 0, 0, 0, 1)), "expected pairs of 1 games with 1 points, got 2 games with 2"),
        ((1, 0, 1, (1, 0, 0)), "expected pairs to be 5 counts"),
    ],
)
def test_what_is_no_match(given, expected):
    with pytest.raises(ValueError, match=expected):
        MatchStatistics(*given)
    with pytest.raises(ValueError, match="of pairs of games, got 3 games"):
        MatchStatistics.of_scores([1, 0, 0], paired=True)
    with pytest.raises(ValueError, match="at most 300 either way, got 400"):
        MatchStatistics(1, 0, 1).llr(0.0, 400.0, "normalized")


# -- the sequential test, and coverage -----------------------------------------------------------------------


@pytest.mark.parametrize("paired", [False, True])
def test_a_test_ends_with_the_game_that_reaches_a_bound(paired):
    scores = np.random.default_rng(0).choice([0.0, 0.5, 1.0], 400, p=[0.1, 0.5, 0.4])
    found = sprt(scores, 0.0, 50.0, paired=paired)
    assert found.verdict == "H1 accepted" and found.games < 400
    assert (found.lower, found.upper) == pytest.approx((-math.log(19.0), math.log(19.0)))
    at, step = found.games, 1 + paired
    whole = MatchStatistics.of_scores(scores[:at], paired=paired).llr(0.0, 50.0)
    before = MatchStatistics.of_scores(scores[: at - step], paired=paired).llr(0.0, 50.0)
    assert found.llr == pytest.approx(whole) and whole >= found.upper > before
    assert sprt(scores[: at - step], 0.0, 50.0, paired=paired).verdict == "goes on"
    assert sprt(1.0 - scores, 0.0, 50.0, paired=paired).verdict == "H0 accepted"


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
    normalized = NORMALIZED * (score - 0.5) / math.sqrt((1.0 - draw - lost) + draw / 4.0 - score**2)
    covered = of_t = 0.0
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
            low, high = found.normalized_elo_interval
            of_t += weight * (low <= normalized <= high)
    assert 0.93 < covered < 0.99
    assert of_t > 0.92


# -- the command ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("5", "--sprt: expected two Elo differences, such as 0,5 or 0,5,normalized, got '5'"),
        ("0,x", "--sprt: expected two Elo differences"),
        ("5,0", "--sprt: expected elo1 to be greater than elo0, 5, got 0"),
        ("0,5,bayes", "--sprt: expected model to be"),
        ("0,nan", "--sprt: expected elo1 to be"),
    ],
)
def test_wrong_tests_are_refused_before_any_work(flag, expected, tmp_path, capsys):
    assert match.main(["match", f"--sprt={flag}", f"--output_dir={tmp_path}/out"]) == 1
    assert expected in capsys.readouterr().err and not (tmp_path / "out").exists()
