"""Policies by name: what specs say, how texts are quoted in them, and that no string aborts the process."""

import math

import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python.algorithms import exploitability

from precomp_games.policies import specs as policy_specs
from precomp_games.policies.specs import in_game_string, make_policy, parsed_spec, quoted, register_policy
from tests.oracles.books import states
from tests.oracles.games import kuhn_poker, random_tree
from tests.properties import examples

KUHN = kuhn_poker()


def _rows(spec, game=KUHN):
    """Return {state: row} of a policy over a whole game."""
    policy = make_policy(game, spec)
    return {str(s): dict(policy.action_probabilities(s)) for s in states(game) if s.current_player() >= 0}


def test_what_they_play():
    uniform, response = _rows("uniform"), _rows("best_response(to=uniform)")
    assert all(max(row.values()) == 1.0 for row in response.values())
    for name, row in _rows("noisy(policy=best_response(to=uniform),epsilon=0.2)").items():
        for action, p in row.items():
            assert p == pytest.approx(0.8 * response[name].get(action, 0.0) + 0.2 * uniform[name][action])
    assert exploitability.nash_conv(KUHN, make_policy(KUHN, "cfr(iterations=300)")) < 0.01


def test_random_depends_on_the_seed_and_the_information_state():
    first = _rows("random(seed=4)")
    for other in ("random(seed=5)", "random(seed=-4,concentration=0.5)"):
        assert _rows(other) != first
    # One row an information state: the player does not see the other's card.
    one, two = (KUHN.new_initial_state().child(0).child(k) for k in (1, 2))
    assert first[str(one)] == first[str(two)]
    rows = _rows("random(seed=1)", random_tree(2))  # where information is perfect, one a history
    assert len({tuple(row.values()) for row in rows.values()}) == len(rows)


def test_other_ways_to_say_the_same():
    for one, other in (
        (" uniform ", "uniform()"),
        ("random(concentration=2)", "random(concentration=2.0)"),  # integers where floats are meant
        ({"name": "noisy", "epsilon": 1}, "noisy(epsilon=1.0)"),
        ("noisy(epsilon=1e-3)", "noisy(epsilon=0.001)"),
        ("noisy(policy=random(seed=1),epsilon=0)", "random(seed=1)"),
    ):
        assert _rows(one) == _rows(other)
    nested = pyspiel.game_parameters_from_string("noisy(policy=random(seed=3),epsilon=0.25)")
    make_policy(KUHN, nested)  # a dictionary is left as it was
    assert nested == {"name": "noisy", "policy": {"name": "random", "seed": 3}, "epsilon": 0.25}


_SPECIAL = st.text('",\\()=.-1 aü%~\n\t\x1b\u2028', max_size=8)
_WORDS = st.sampled_from(["true", "False", "1.50", "007", "none", "100%28.pgn", "uci(engine=x)", "\udcff("])


@examples(200)
@given(st.text(st.characters(exclude_characters="\0"), max_size=20) | _SPECIAL | _WORDS)
def test_any_text_goes_through_a_spec_and_a_game_string(text):
    """As written by `quoted`, and deep in a spec; by itself where OpenSpiel's own parser reads it."""
    inner = f"noisy(policy=uci(engine={quoted(text)},r=4),epsilon=0.1)"
    spec = f"games(file={quoted(text)},prior={inner},copies=1)"
    parsed = parsed_spec(spec)
    assert parsed["file"] == parsed["prior"]["policy"]["engine"] == text
    assert type(parsed["file"]) is str and parsed["copies"] == 1
    once_more = parsed_spec(f"noisy(policy={quoted(spec)})")["policy"]
    assert once_more == spec and parsed_spec(once_more) == parsed
    given = pyspiel.game_parameters_from_string(f"x(a=1,file={in_game_string(text)},b=y(c=2))")
    assert policy_specs.unquoted(given) == {"name": "x", "a": 1, "file": text, "b": {"name": "y", "c": 2}}


def test_quotes_are_written_where_they_are_needed_and_may_be_typed():
    for plain in ("games.pgn", "/home/me/games of mine.pgn", "ünï;[x] 'y' %", 'a "b" c', "~/x"):
        assert quoted(plain) == in_game_string(plain) == plain
        parsed = parsed_spec(f"games(file={plain},player={plain})")
        assert parsed == {"name": "games", "file": plain, "player": plain}
    for typed, text in (
        ('"a (1), b=c.bin" ', "a (1), b=c.bin"),
        (r'"C:\\my \"books\" \u00281\u0029.bin"', r'C:\my "books" (1).bin'),
    ):
        assert parsed_spec(f"polyglot(file={typed})")["file"] == text


@pytest.mark.parametrize(
    "hidden", ['"uci(engine=x)"', r'"noisy(policy=\"uci(engine=x)\")"', r'"uci\u0028engine=x)"']
)
def test_quotes_hide_nothing_from_who_does_not_trust(hidden):
    with pytest.raises(ValueError, match=r"a spec that opens and runs nothing, got uci\(engine=...\)"):
        make_policy(KUHN, f"noisy(policy={hidden})")


# What tools/fuzz/targets/texts.py draws seldom or never.
_MALFORMED = ["", "cfr(1000)", "random(concentration=1e999999)", "uniform;random", "random\x00(seed=1)"]
_MALFORMED += ["ра́ндом(seed=1)", "a" * 10_000, "(" * 5_000, "noisy(policy=" * 200 + "uniform"]
_NO_QUOTES = ['polyglot(file="a (1).bin)', 'polyglot("file"=a)', 'polyglot(file="a"=b)']
_SEED, _CONCENTRATION = (
    "expected seed of random to be int, got ",
    "expected concentration to be a positive, fin",
)
_ONE_OF, _EPSILON = (
    "expected one of alpha_beta, best_response, .*, got ",
    "epsilon to be a number from 0 to 1, got ",
)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        *((malformed, "expected .* got ") for malformed in _MALFORMED),
        (r'polyglot(file="C:\games (1).bin")', "expected the escapes of JSON in double quotes"),
        *((spec, "expected a spec such as") for spec in _NO_QUOTES),
        ("unifrom", _ONE_OF + r"'unifrom' \(did you mean uniform\?\)$"),
        ({"name": None}, _ONE_OF),
        ("uniform(seed=1)", r"expected the arguments uniform\(\), got 'seed' in 'uniform\(seed=1\)'"),
        (
            "random(sed=1)",
            r"expected the arguments random\(seed=0,.*\), got 'sed' .* \(did you mean seed\?\)$",
        ),
        *((f"random(seed={value})", _SEED + value) for value in ("1.5", "True")),
        ("random(seed=uniform())", _SEED + "'uniform'"),
        ("best_response(to=random(seed=x))", _SEED + "'x'"),
        ({"name": "random", "concentration": math.nan}, _CONCENTRATION + ".* got nan"),
        ("random(concentration=0)", _CONCENTRATION + ".* got 0.0"),
        ("cfr(iterations=0)", "expected iterations to be an integer of at least 1, got 0"),
        *((f"noisy(epsilon={value})", f"expected {_EPSILON}{value}") for value in ("1.5", "-0.1")),
        ({"name": "noisy", "epsilon": math.nan}, f"expected {_EPSILON}nan"),
        ("noisy(epsilon=True)", "expected epsilon of noisy to be float, got True"),
        ("noisy(policy=3)", "expected a spec such as .* got '3'"),
        ({"name": "noisy", "policy": {}}, _ONE_OF + r"\{\}"),
        (b"uniform", "expected a string or a dictionary, got b'uniform'"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_wrong_specs(spec, words):
    with pytest.raises(ValueError, match=r"^make_policy\(\): " + words):
        make_policy(KUHN, spec)


def test_policies_can_be_registered(monkeypatch):
    monkeypatch.setattr(policy_specs, "_FACTORIES", dict(policy_specs._FACTORIES))

    class Noise:
        """A factory without a hash."""

        __hash__ = None

        def __call__(self, game, share: float = 0.5, of: str = "uniform"):
            return make_policy(game, f"noisy(policy={of},epsilon={share})")

    register_policy("noise", Noise())
    assert policy_specs.policy_names()["noise"] == "share=0.5,of=uniform"
    assert _rows("noise(share=0.2,of=cfr)") == _rows("noisy(policy=cfr,epsilon=0.2)")
    assert _rows("noisy(policy=noise,epsilon=0.0)") == _rows("uniform")
    for name in ("noise", "uniform", "", "two words", "1st"):
        with pytest.raises(ValueError, match=r"^register_policy\(\): expected a new identifier, got "):
            register_policy(name, Noise())
