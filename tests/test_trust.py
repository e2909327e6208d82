"""Nothing that a file names is run, opened or written: the rule, and inputs that broke it once."""

import dataclasses
import importlib
import inspect
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import HistoryTree, chess, make_policy, register_policy
from precomp_games._support.files import read_archive, write_archive
from precomp_games.chess.model.model import preparation_policies
from precomp_games.commands import spar
from precomp_games.commands.uci import main
from precomp_games.policies import specs as policy_specs
from precomp_games.tree import base_game
from precomp_games.tree.facts import ARRAYS
from tests.chess import fake_engine
from tests.examples.launcher import launch
from tests.oracles.engines import HashEngine
from tests.properties import examples
from tools.fuzz.mutate import VALUES, places
from tools.readers import READERS
from tools.resumed import WATCHED, left, resume
from tools.samples import results, sample_trees, small_book

_ROOT = pathlib.Path(__file__).parents[1]


def program(path, text):
    """Return a program of the shell."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def evil(tmp_path):
    """Return the spec of an engine that leaves a file when it has run."""
    return f"uci(engine={program(tmp_path / 'evil.sh', f'touch {tmp_path}/ran')},nodes=1)"


@pytest.fixture
def fake(tmp_path):
    """Return the engine of the tests, as one file; its input goes to a file."""
    command = f"{sys.executable} {fake_engine.__file__}"
    return program(tmp_path / "fake", f"tee -a {tmp_path}/input | {command}")


def preparation(folder, engine="Fake 1.0", **settings):
    """Return a folder with the result of somebody's preparation."""
    (message,) = results()
    folder.mkdir()
    message = message | {"analyst": engine, "opponent": engine, "settings": message["settings"] | settings}
    (folder / "result.json").write_text(json.dumps(message))
    return folder


# -- what broke it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--book={} --play=model", "--opponent={}"])
def test_options_in_an_identity_are_not_set(flag, tmp_path, fake, capsys):
    identity = f"Stockfish 15.1 [Debug Log File={tmp_path}/.bashrc, SyzygyPath=$(id>x)]"
    folder = preparation(tmp_path / "bk2", identity)
    assert main(["x", *flag.format(folder).split(), f"--engine={fake}"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: --engine: expected the engine that the preparation was made with")
    assert error.count("\n") == 1 and "--engine_option='SyzygyPath=$(id>x)'" in error
    assert not (tmp_path / ".bashrc").exists()
    assert "Debug Log File" not in (tmp_path / "input").read_text()
    # It is printed cleanly, and not whole.
    for number, engine in enumerate(("\x1b[2J\u202e\n[A=b]", "x [" + "A=b, " * 100_000 + "C=d]")):
        folder = preparation(tmp_path / f"{number}", engine)
        assert main(["x", *flag.format(folder).split(), f"--engine={fake}"]) == 1
        error = capsys.readouterr().err
        assert len(error) < 3000 and error.strip().isprintable()


def test_an_opponents_spec_runs_nothing(tmp_path, evil, fake, capsys, monkeypatch):
    made = tmp_path / "made.sqlite"
    folder = preparation(tmp_path / "bk", opponent=evil.replace("nodes", f"store={made},nodes"))
    assert main(["x", f"--opponent={folder}", f"--engine={fake}"]) == 1
    error = capsys.readouterr().err
    assert "opens and runs nothing" in error and "--opponent_spec" in error and error.count("\n") == 1
    # Our own play is the engine's of the flags, whoever the opponent was.
    monkeypatch.setattr(sys, "stdin", io.StringIO("uci\nposition startpos moves d2d4\ngo\nquit\n"))
    assert main(["x", f"--book={folder}", "--play=model", f"--engine={fake}"]) == 0
    assert "bestmove" in capsys.readouterr().out
    assert not (tmp_path / "ran").exists() and not made.exists()


def test_a_match_runs_nothing_that_its_folder_names(tmp_path, evil, fake):
    folder = preparation(tmp_path / "bk", opponent=evil)
    flags = [f"--from={folder}", "--games=2", f"--engine={fake}", "--store=:memory:", "--nocontrols"]
    done = launch("book_match", *flags, cwd=tmp_path)
    assert done.returncode == 1 and not (tmp_path / "ran").exists()
    assert done.stderr.count("\n") == 1 and "--opponent" in done.stderr
    # Whoever repeats it means it.
    launch("book_match", *flags, f"--opponent={evil}", cwd=tmp_path)
    assert (tmp_path / "ran").exists()


def test_the_error_of_a_wrong_fingerprint_does_not_say_the_right_one(tmp_path):
    path, own = tmp_path / "tree.npz", sample_trees()[0]
    own.save(path)
    header, arrays = read_archive(path, ARRAYS)
    other = own.value + 0.5
    write_archive(path, header, arrays | {"value": other})
    with pytest.raises(ValueError, match="was damaged") as error:
        HistoryTree.load(path)
    assert dataclasses.replace(own, value=other).fingerprint not in str(error.value)


# -- folders in which a command goes on ----------------------------------------------------------------------


def test_a_result_names_no_file_of_a_sparring(tmp_path):
    """Any text in a field that file names could be made of; there are folders for ways out of them."""
    folder, victim = tmp_path / "out", tmp_path / "victim" / "repertoire.pgn"
    for name in ("last_x", "last_", "last_..", "last_1"):
        (folder / name).mkdir(parents=True)
    victim.parent.mkdir()
    victim.write_text("1. e4 *\n")
    result = json.loads(left("spar")["result.json"])
    paths = ("x/../../victim/repertoire", "../victim/repertoire", "/victim/repertoire", "x", "1")
    for text in (*paths, 0.5, -1, True, None, [], [1], float("nan"), float("inf")):
        for changed in ({"games": {"played": text}}, {"games": text}, {"work": text}):
            with pytest.raises(ValueError, match=r"^error: .*expected"):
                resume("spar", folder, {"result.json": json.dumps(result | changed).encode()})
            assert victim.read_text() == "1. e4 *\n"
            assert (folder / "last.pgn").read_bytes() == left("spar")["last.pgn"]


def test_an_earlier_match_is_put_aside_by_number(tmp_path):
    message = json.loads(left("spar")["result.json"]) | {"games": {"played": 1}}
    resume("spar", tmp_path, {"result.json": json.dumps(message).encode()})
    assert (tmp_path / "last_1.pgn").read_bytes() == left("spar")["last.pgn"]


@pytest.mark.parametrize(
    ("name", "size", "whole"), [("games.pgn", -5, 1), ("games.pgn", 70, 0), ("last.pgn", 100, 0)]
)
def test_a_sparring_goes_on_behind_its_last_whole_game(name, size, whole, tmp_path):
    """A game that is cut off is reported in one line and played again."""
    before = left("spar")[name]
    output = resume("spar", tmp_path, {name: before[:size]})
    assert f"{name} ended amid a game: its last " in output and output.count("ended amid") == 1
    assert (tmp_path / name).read_bytes().count(b"[Event ") == before.count(b"[Event ")
    assert whole == 0 or (tmp_path / name).read_bytes().startswith(before[: len(before) // 2])


@pytest.mark.parametrize("name", ["games.pgn", "last.pgn", "without.pgn"])
def test_games_are_not_written_through_links(name, tmp_path):
    victim = tmp_path / "repertoire.pgn"
    victim.write_text("1. e4")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(victim)
    with pytest.raises(ValueError, match=f"--output_dir: expected {name} to be a file of its own"):
        resume("spar", tmp_path / "out", {name: b"1. e4"})
    assert victim.read_text() == "1. e4"


@examples(800)
@given(st.sampled_from(["spar", "report"]), st.data())
def test_whatever_stands_in_a_field_a_result_is_read_or_refused_in_one_line(name, data):
    """A result that is read can be shown, and written again."""
    message = {"": json.loads(left(name)["result.json"])}
    holder, key = data.draw(st.sampled_from(places(message)))
    holder[key] = data.draw(st.sampled_from(VALUES))
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "result.json").write_text(json.dumps(message[""]))
        try:
            made = chess.Preparation.read(folder)
        except ValueError as error:
            words = "expected a result.json of precomp-games prepare, got" if holder is message else ""
            assert words in str(error) and "\n" not in str(error)
        else:
            assert holder is not message
            json.dumps(made.to_json(), indent=1)
            assert chess.BookPage(made).facts and str(made) and made.columns()


def test_conditions_of_a_sparring_are_these_or_refused_in_one_line(tmp_path):
    message = json.loads(left("spar")["sparring.json"])
    changed = [message | {name: value} for value in VALUES for name in message if message[name] != value]
    path = tmp_path / "sparring.json"
    for other in (*VALUES, *changed):
        path.write_text(json.dumps(other))
        with pytest.raises(ValueError, match=r"^--output_dir: expected a new folder, or [^\n]*$"):
            spar._check_conditions(path, message)


@pytest.mark.parametrize("kind", [chess.EvaluationStore, lambda path: chess.Drill(small_book(), path)])
def test_the_journal_of_a_database_names_no_file(kind, tmp_path):
    """SQLite itself reads a file that the end of a journal names, and removes it."""
    path, victim = tmp_path / "out" / "kept.sqlite", tmp_path / "victim.pgn"
    path.parent.mkdir()
    victim.write_text("1. e4 *")
    kind(path).close()
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(victim)
    head = magic + struct.pack(">5I", 0, 0, path.stat().st_size // 4096, 512, 4096)
    end = struct.pack(">I", (1 << 30) // 4096 + 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    journal = path.with_name("kept.sqlite-journal")
    journal.write_bytes(head.ljust(512, b"\0") + end)
    with pytest.raises((ValueError, chess.EngineError), match="a journal beside it that names another file"):
        kind(path)
    assert victim.read_text() == "1. e4 *"
    journal.write_bytes(head.ljust(512, b"\0"))  # one of its own is gone back by
    kind(path).close()
    assert not journal.exists()


# -- trust ---------------------------------------------------------------------------------------------------


def test_parts_neither_lose_trust_nor_gain_it(tmp_path, monkeypatch):
    monkeypatch.setattr(policy_specs, "_FACTORIES", dict(policy_specs._FACTORIES))
    made = []

    def leaf(game, file: str = ""):
        made.append(file)
        return make_policy(game, "uniform")

    def around(game, of: str = "uniform", trusted: bool = False):
        return make_policy(game, of, trusted=True) if trusted else make_policy(game, of)

    def reading(game):  # a spec that stood in a file
        return make_policy(game, "leaf(file=b)", trusted=False)

    register_policy("leaf", leaf, touches=["file"])
    register_policy("around", around)
    register_policy("reading", reading)
    game = pyspiel.load_game("kuhn_poker")
    spec, around_it = "leaf(file=a)", "around(of=leaf(file=a))"
    for nested in (
        *(spec, around_it, f"noisy(policy=around(of={around_it}))", f"mixture(a=uniform,b={spec})"),
        *(f"around(trusted=true,of={spec})", {"name": "around", "of": spec}),
        {"name": "noisy", "policy": around_it},
    ):
        made.clear()
        with pytest.raises(ValueError, match=r"opens and runs nothing, got leaf\(file=\.\.\.\)"):
            make_policy(game, nested)
        assert made == []
        make_policy(game, nested, trusted=True)
        assert made == ["a"]
    with pytest.raises(ValueError, match="opens and runs nothing"):
        make_policy(game, "reading", trusted=True)
    make_policy(game, "leaf")  # without the argument it touches nothing
    with pytest.raises(ValueError, match="opens and runs nothing"):  # and nothing is left of trust
        make_policy(game, spec)


def test_each_argument_of_a_policy_is_a_part_or_declared_or_known_to_be_harmless():
    """A text that is an argument of a policy by name is a spec, touches the machine, or stands here."""
    harmless = {
        *("games.player", "games.without", "games.fit", "games.speed", "polyglot.weights", "uci.plays"),
        *("mixture.weights", "mixture.per", "alpha_beta.evaluator", "minimax.evaluator", "mcts.evaluator"),
        *("pvs.evaluator", "mcts.choice"),
    }
    policy_specs.policy_names()
    for name, (_, defaults, touches) in policy_specs._FACTORIES.items():
        texts = {key for key, default in defaults.items() if isinstance(default, str)}
        parts = {key for key in texts if defaults[key] in ("uniform", "none") or key == "policy"}
        unknown = {f"{name}.{key}" for key in texts - parts - touches} - harmless
        assert not unknown, "declare what touches the machine, see register_policy()"


def test_settings_say_by_whom_they_are_trusted(tmp_path):
    named = {"evaluation": "calibrated", "calibration": "/nonexistent"}
    for fields, words in (
        ({"opponent": "games(file=/nonexistent.pgn)"}, "opens and runs nothing"),
        (named, "a calibration that is shipped"),
    ):
        settings = chess.PreparationSettings(**fields, trusted=True)
        assert "trusted" not in settings.as_dict()
        with pytest.raises(OSError, match="nonexistent"):
            preparation_policies(settings, HashEngine())
        with pytest.raises(ValueError, match=words):
            preparation_policies(dataclasses.replace(settings, trusted=False), HashEngine())
    for trusted in (True, False):
        with pytest.raises(ValueError, match="trusted"):
            chess.Preparation.read(preparation(tmp_path / str(trusted), trusted=trusted))
    assert not chess.Preparation.read(preparation(tmp_path / "x")).settings.trusted


def test_game_strings_are_not_trusted(evil, tmp_path):
    for one, other in (("sigma", "sigma_pre"), ("sigma_pre", "sigma")):
        policies = f"{one}={evil},{other}=uniform()"
        with pytest.raises((ValueError, RuntimeError), match="opens and runs nothing"):
            pyspiel.load_game(f"python_meta_precomputation(game=python_chess(max_plies=2),{policies})")
    assert not (tmp_path / "ran").exists()


def test_no_game_opens_a_file_but_by_parameters_that_are_known():
    """Of all texts that registered games take, the names that speak of files are those that do."""
    for games in ("games", "mfg.games"):
        importlib.import_module(f"open_spiel.python.{games}")
    named = set()
    for game in pyspiel.registered_games():
        for key, default in game.parameter_specification.items():
            if base_game.names_files(f"{game.short_name}({key}=x)"):
                named.add(f"{game.short_name}.{key}")
            elif isinstance(default, str):  # where it names a file, base_game has to know
                assert key in _TEXTS.split(), game
    assert {"efg_game.filename", "nfg_game.filename", "python_meta_precomputation.tree_file"} <= named


_TEXTS = """
betting bettingAbstraction bidding_rule blind blind_schedule boardCards congestion_matrix fen firstPlayer
forbidden_states form gameversion grid handReaches history init_distrib initial_distribution
initial_distribution_value maxRaises network numBoardCards observation_type obstype payoff payoffs
pile_sizes points_order positional_reward positional_reward_value raiseSize returns_type reward_matrix
scoring_type ship_sizes ship_values stack string_rep subgame"""


# -- the rule ------------------------------------------------------------------------------------------------

# Of a file or a program that their caller names.
_WRITERS = (
    *("HistoryTree.save", "EvaluationStore.export", "Engines.export", "save_policy", "save_calibration"),
    *("write_exports", "write_match_pgn", "write_pgn", "Preparation.write", "write_polyglot", "write_report"),
)
_STARTERS = ("DaskEngine", "EnginePlayer", "EnginePool", "MatchEngine", "find_engine")


def test_all_public_readers_are_watched():
    """By their arguments: a new function that takes a path is a reader, which stands in tools/readers.py."""
    found = set()
    for module in ("", ".chess", ".algorithms"):
        face = importlib.import_module(f"precomp_games{module}")
        for name in face.__all__:
            thing = getattr(face, name)
            methods = vars(thing) if inspect.isclass(thing) and thing.__module__.startswith("precomp") else {}
            things = {name: thing} | {f"{name}.{k}": getattr(thing, k) for k in methods if k[0] != "_"}
            found |= {key for key, function in things.items() if _takes_a_file(function)}
    watched = {name for reader in READERS.values() for name in reader.covers}
    assert found <= watched.union(_WRITERS, _STARTERS), "see tools/readers.py, or say why not"


def _takes_a_file(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any("PathLike" in str(p.annotation) or p.name in ("path", "command") for p in parameters)


# Costs seconds: all readers.
@pytest.mark.parametrize(
    ("step", "traced"),
    [(16, False), pytest.param(2, True, marks=pytest.mark.slow("half of the files, under strace"))],
)
def test_readers_read_and_do_nothing_else(step, traced, tmp_path):
    """In a process of its own, under an audit hook: good files, and hostile ones, which are worked with."""
    command = [sys.executable, "-m", "tools.readers", str(step)]
    if traced:
        strace = shutil.which("strace")
        if strace is None or subprocess.run([strace, "-o", "/dev/null", "true"], check=False).returncode:
            pytest.skip("there is no strace that may trace")
        watched = ["-f", "-qq", "-e", "trace=execve,connect,openat,open", "-o", str(tmp_path / "calls")]
        command = [strace, *watched, *command]
    done = subprocess.run(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=600, check=True
    )
    message = json.loads(done.stdout)
    assert message.keys() == WATCHED.keys()
    for name, row in message.items():
        assert row["events"] == [], name
        assert row["read"] == row["good"] >= 1, name
        assert row["hostile"] >= 20 // step, name
    if traced:  # what C++ opens is no event of Python's
        calls = (tmp_path / "calls").read_text(errors="replace")
        assert calls.count("execve(") == 1 and "connect(" not in calls
        assert not any(text in calls for text in ("/etc/passwd", "/bin/true", "/var/tmp/", '"/etc"'))
