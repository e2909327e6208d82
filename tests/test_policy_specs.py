"""Policies by name: valid specs, and that no string brings the process down."""

import dataclasses
import math

import hypothesis
import hypothesis.strategies as st
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

from precomp_games.policies import specs as policy_specs
from precomp_games.policies.specs import (
    in_game_string,
    make_policy,
    parsed_spec,
    policy_names,
    quoted,
    register_policy,
    unquoted,
)
from tests.oracles.books import states
from tests.oracles.games import random_tree


@pytest.fixture(scope="module")
def kuhn():
    return pyspiel.load_game("kuhn_poker")


@pytest.fixture
def registry(monkeypatch):
    """Undo a test's registrations at its end."""
    monkeypatch.setattr(policy_specs, "_FACTORIES", dict(policy_specs._FACTORIES))


def _rows(game, spec):
    """{state: row} of a policy over a whole game."""
    policy = make_policy(game, spec)
    return {str(s): dict(policy.action_probabilities(s)) for s in states(game) if s.current_player() >= 0}


def test_all_names_have_defaults(kuhn):
    names = policy_names()
    assert set(names) >= {"uniform", "random", "cfr", "best_response", "noisy"}
    assert names["uniform"] == ""
    assert names["noisy"] == "policy=uniform,epsilon=0.1"
    assert list(names) == sorted(names)
    board = pyspiel.load_game("connect_four(rows=2,columns=3,x_in_row=2)")
    known = {"uniform", "random", "cfr", "best_response", "noisy"}
    # These are of chess, and there is no default for a file or a program.
    names.pop("human")  # whose networks are elsewhere
    for name, argument in (
        ("games", "file"),
        ("polyglot", "file"),
        ("uci", "engine"),
    ):
        assert names.pop(name).startswith(f"{argument}=,")
        with pytest.raises(ValueError, match=rf"expected {name}\({argument}=\.\.\.\)"):
            make_policy(board, name)
    for name, arguments in names.items():
        # What the help text shows is a spec, and is the default.
        game = kuhn if name in known else board  # the others search: perfect information
        assert _rows(game, f"{name}({arguments})") == _rows(game, name)


def test_what_they_play(kuhn):
    assert set(map(tuple, (r.values() for r in _rows(kuhn, "uniform").values()))) == {(0.5, 0.5)}
    uniform, response = _rows(kuhn, "uniform"), _rows(kuhn, "best_response(to=uniform)")
    assert all(max(row.values()) == 1.0 for row in response.values())
    noisy = _rows(kuhn, "noisy(policy=best_response(to=uniform),epsilon=0.2)")
    for name, row in noisy.items():
        for action, p in row.items():
            assert p == pytest.approx(0.8 * response[name].get(action, 0.0) + 0.2 * uniform[name][action])
    assert _rows(kuhn, "noisy(policy=random(seed=1),epsilon=0)") == _rows(kuhn, "random(seed=1)")


def test_cfr_is_solved(kuhn):
    solved = make_policy(kuhn, "cfr(iterations=300)")
    assert exploitability.nash_conv(kuhn, solved) < 0.01
    assert exploitability.nash_conv(kuhn, make_policy(kuhn, "uniform")) > 0.5


def test_random_depends_on_the_seed_and_the_information_state(kuhn):
    first = _rows(kuhn, "random(seed=4)")
    assert _rows(pyspiel.load_game("kuhn_poker"), {"name": "random", "seed": 4}) == first
    for other in ("random(seed=5)", "random(seed=-4,concentration=0.5)"):
        assert _rows(kuhn, other) != first
    # One row an information state: the player does not see the other's card.
    one, two = (kuhn.new_initial_state().child(0).child(k) for k in (1, 2))
    policy = make_policy(kuhn, "random(seed=4)")
    assert policy.action_probabilities(one) == policy.action_probabilities(two)
    # Where information is perfect, one a history.
    rows = _rows(random_tree(2), "random(seed=1)")
    assert rows == _rows(random_tree(2), "random(seed=1)")
    assert len({tuple(row.values()) for row in rows.values()}) == len(rows)


def test_other_ways_to_say_the_same(kuhn):
    """Dictionaries, as OpenSpiel's parser makes them, and integers where floats are meant."""
    nested = {"name": "noisy", "policy": {"name": "random", "seed": 3}, "epsilon": 0.25}
    text = "noisy(policy=random(seed=3),epsilon=0.25)"
    assert pyspiel.game_parameters_from_string(text) == nested
    assert _rows(kuhn, nested) == _rows(kuhn, text)
    assert nested["policy"] == {"name": "random", "seed": 3}  # left as it was
    for one, other in (
        ({"name": "uniform"}, "uniform"),
        (" uniform ", "uniform()"),
        ("random(concentration=2)", "random(concentration=2.0)"),
        ({"name": "noisy", "epsilon": 1}, "noisy(epsilon=1.0)"),
        ("noisy(epsilon=1e-3)", "noisy(epsilon=0.001)"),
    ):
        assert _rows(kuhn, one) == _rows(kuhn, other)


_NAMES = [
    *(
        "my games (1).pgn",
        "a,b=c.pgn",
        "semi;colon's [x].pgn",
        '"quoted".pgn',
        'half"',
        '"half',
        '"',
        "\\",
        "\\\\,",
    ),
    *(
        ".hidden",
        "-dash",
        "~/x",
        "100%28.pgn",
        "ünï (1)",
        "партия=1",
        " x ",
        "",
        "1.50",
        "007",
        "true",
        "False",
    ),
    *("a\nb", "a\tb", "a\x1b[2Jb", "\udcff(", "\u2028", "uci(engine=x)", "none", "a\\", "a,\\"),
]


@hypothesis.given(st.text(st.characters(exclude_characters="\0"), max_size=20) | st.sampled_from(_NAMES))
def test_any_text_goes_through_a_spec_and_a_game_string(text):
    """As written by `quoted`, and deep in a spec; by itself where OpenSpiel's own parser reads it."""
    spec = (
        f"games(file={quoted(text)},prior=noisy(policy=uci(engine={quoted(text)},r=4),epsilon=0.1),copies=1)"
    )
    parsed = parsed_spec(spec)
    assert parsed["file"] == parsed["prior"]["policy"]["engine"] == text
    assert type(parsed["file"]) is str and parsed["copies"] == 1
    once_more = parsed_spec(f"noisy(policy={quoted(spec)})")["policy"]
    assert once_more == spec and parsed_spec(once_more) == parsed
    given = pyspiel.game_parameters_from_string(f"x(a=1,file={in_game_string(text)},b=y(c=2))")
    assert unquoted(given) == {"name": "x", "a": 1, "file": text, "b": {"name": "y", "c": 2}}


def test_what_needs_no_quotes_has_none_and_quotes_may_be_typed():
    for plain in (
        "games.pgn",
        "/home/me/games of mine.pgn",
        "Karpov Anatoli",
        "ünï;[x] 'y' %",
        'a "b" c',
        "~/x",
    ):
        assert quoted(plain) == in_game_string(plain) == plain
        assert parsed_spec(f"games(file={plain},player={plain})") == {
            "name": "games",
            "file": plain,
            "player": plain,
        }
    assert quoted("my games (1).pgn") == '"my games (1).pgn"'
    assert parsed_spec('polyglot(file="a (1), b=c.bin" )')["file"] == "a (1), b=c.bin"
    assert (
        parsed_spec(r'polyglot(file="C:\\my \"books\" \u00281\u0029.bin")')["file"]
        == r'C:\my "books" (1).bin'
    )
    with pytest.raises(ValueError, match="expected the escapes of JSON in double quotes"):
        parsed_spec(r'polyglot(file="C:\games (1).bin")')
    for unclosed in ('polyglot(file="a (1).bin)', 'polyglot("file"=a)', 'polyglot(file="a"=b)'):
        with pytest.raises(ValueError, match="expected a spec such as"):
            parsed_spec(unclosed)


def test_quotes_hide_nothing_from_who_does_not_trust(kuhn):
    for hidden in ('"uci(engine=x)"', r'"noisy(policy=\"uci(engine=x)\")"', r'"uci\u0028engine=x)"'):
        with pytest.raises(
            ValueError, match=r"expected a spec that opens and runs nothing, got uci\(engine=...\)"
        ):
            make_policy(kuhn, f"noisy(policy={hidden})")


# What tools/fuzz/targets/texts.py draws seldom or never.
_MALFORMED = [
    "",
    "cfr(1000)",
    "random(concentration=1e999999)",
    "uniform;random",
    "random\x00(seed=1)",
    "ра́ндом(seed=1)",
    "a" * 10_000,
    "(" * 5_000,
    "noisy(policy=" * 200 + "uniform",
]


@pytest.mark.parametrize("spec", _MALFORMED, ids=lambda spec: repr(spec[:40]))
def test_malformed_specs(kuhn, spec):
    with pytest.raises(ValueError, match=r"^make_policy\(\): expected .* got "):
        make_policy(kuhn, spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            "unifrom",
            r"expected one of alpha_beta, best_response, .*, got 'unifrom' \(did you mean uniform\?\)$",
        ),
        ({"name": None}, "expected one of .* got"),
        ("uniform(seed=1)", r"expected the arguments uniform\(\), got 'seed' in 'uniform\(seed=1\)'"),
        (
            "random(sed=1)",
            r"expected the arguments random\(seed=0,.*\), got 'sed' .* \(did you mean seed\?\)$",
        ),
        ("random(seed=1.5)", "expected seed of random to be int, got 1.5"),
        ("random(seed=uniform())", "expected seed of random to be int, got 'uniform'"),
        ("random(seed=True)", "expected seed of random to be int, got True"),
        (
            {"name": "random", "concentration": math.nan},
            "expected concentration to be a positive, finite number, got nan",
        ),
        ("cfr(iterations=0)", "expected iterations to be an integer of at least 1, got 0"),
        ("random(concentration=0)", "expected concentration to be a positive, finite number, got 0.0"),
        ("noisy(epsilon=1.5)", "expected epsilon to be a number from 0 to 1, got 1.5"),
        ("noisy(epsilon=-0.1)", "expected epsilon to be a number from 0 to 1, got -0.1"),
        ({"name": "noisy", "epsilon": math.nan}, "expected epsilon to be a number from 0 to 1, got nan"),
        ("noisy(epsilon=True)", "expected epsilon of noisy to be float, got True"),
        ("noisy(policy=3)", "expected a spec such as .* got '3'"),
        ("best_response(to=random(seed=x))", "expected seed of random to be int, got 'x'"),
        ({"name": "noisy", "policy": {}}, r"expected one of .* got \{\}"),
        (b"uniform", "expected a string or a dictionary, got b'uniform'"),
    ],
)
def test_wrong_specs(kuhn, spec, words):
    with pytest.raises(ValueError, match=r"^make_policy\(\): " + words):
        make_policy(kuhn, spec)


def test_register(kuhn, registry):
    def first(game, skip: int = 0, of: str = "uniform"):
        policy = make_policy(game, of)
        policy.skip = skip
        return policy

    register_policy("first", first)
    assert policy_names()["first"] == "skip=0,of=uniform"
    assert make_policy(kuhn, "first(skip=3,of=random(seed=1))").skip == 3
    assert _rows(kuhn, "noisy(policy=first,epsilon=0.0)") == _rows(kuhn, "uniform")
    for name in ("first", "uniform", "", "two words", "1st"):
        with pytest.raises(ValueError, match=r"^register_policy\(\): expected a new identifier, got "):
            register_policy(name, first)


def test_a_factory_may_have_no_hash(kuhn, registry):
    @dataclasses.dataclass
    class Noise:
        most: float

        def __call__(self, game, share: float = 0.5):
            return make_policy(game, f"noisy(epsilon={share * self.most})")

    register_policy("noise", Noise(0.5))
    assert policy_names()["noise"] == "share=0.5"
    assert _rows(kuhn, "noise(share=0.2)") == _rows(kuhn, "noisy(epsilon=0.1)")
