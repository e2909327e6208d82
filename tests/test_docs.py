"""Pages: every snippet runs and prints the text after it, and links lead somewhere.

Code stands between fences that name its language. Python snippets of a page share one namespace, in order; a
text block right after one is what it prints. A "python engine" fence needs a real engine. Of shell snippets,
and of the stories in docs/stories, it is checked that they could be run. What no other test
runs is run, in a temporary folder and with smaller settings where it would take minutes.
"""

import collections
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest

from precomp_games.chess import find_engine
from precomp_games.commands import main
from tests.examples.launcher import EXAMPLES, ROOT, printed

_PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_STORIES = sorted((ROOT / "docs" / "stories").glob("*.sh"))
_DATA = pathlib.Path("precomp_games", "commands", "data")
_DIRECTIVES = {"{eval-rst}", "{toctree}"}  # Sphinx's directives in fences
_FENCE = re.compile(r"^```([\w{}-]*)( engine)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_WITH_FLAGS = r"`((?:(?:python )?examples/\w+\.py|precomp-games \w+) --[^`]+)`"
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# A fenced block; `line` is that of its fence, `gap` what stands between it and the one before.
Block = collections.namedtuple("Block", "line language text gap engine")


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for match in _FENCE.finditer(text):
        line, gap = text.count("\n", 0, match.start()) + 1, text[end : match.start()]
        found.append(Block(line, match[1], match[3], gap, engine=bool(match[2])))
        end = match.end()
    return found


def test_code_is_fenced_and_says_its_language():
    for page in _PAGES:
        text = page.read_text(encoding="utf-8")
        found = blocks(page)
        assert {block.language for block in found} <= {"python", "bash", "text"} | _DIRECTIVES, page
        assert all(block.language == "python" for block in found if block.engine), page
        assert text.count("\n```") + text.startswith("```") == 2 * len(found), page
        indented = re.search(r"\n\n(    |\t)\S.*", _FENCE.sub("", text))
        assert not indented, f"{page}: indented code: is it a snippet? {indented}"


# -- Python ------------------------------------------------------------------------------------------


_LONG = ("chess.md", "efce.md", "judge.md", "opponents.md", "robust.md")
_WHY = "seconds, of what other tests show in parts"


def _pages_of_python():
    for page in _PAGES:
        found, name = blocks(page), page.relative_to(ROOT).as_posix()
        marks = [pytest.mark.slow(_WHY)] if page.name in _LONG else []
        if any(block.language == "python" for block in found):
            yield pytest.param(page, False, id=name, marks=marks)
        if any(block.engine for block in found):
            yield pytest.param(page, True, id=f"{name} with an engine", marks=[pytest.mark.engine, *marks])


@pytest.mark.parametrize(("page", "engine"), list(_pages_of_python()))
def test_python_snippets(page, engine, folder):
    namespace, printed_text = {"__name__": "snippet"}, None
    for block in blocks(page):
        if block.language == "python" and (engine or not block.engine):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * block.line + block.text, page, "exec"), namespace)
            printed_text = output.getvalue()
        elif printed_text is not None and block.language == "text" and not block.gap.strip():
            assert block.text == printed_text, f"{page.name}, line {block.line}"


# -- the shell ---------------------------------------------------------------------------------------


def commands_in(text):
    """Return the commands of a shell's text, as words; comments are left out."""
    found = (shlex.split(line, comments=True) for line in text.replace("\\\n", " ").splitlines())
    return [words for words in found if words]


def _commands():
    """Yield all commands: of snippets, of stories, and examples and commands with flags in running text."""
    for page in _PAGES:
        texts = [block.text for block in blocks(page) if block.language == "bash"]
        texts += [text.replace("\n", " ") for text in re.findall(_WITH_FLAGS, page.read_text("utf-8"))]
        for words in commands_in("\n".join(texts)):
            yield pytest.param(words, id=f"{page.name}: {shlex.join(words)}")
    for story in _STORIES:
        for words in commands_in(story.read_text(encoding="utf-8")):
            yield pytest.param(words, id=f"{story.name}: {shlex.join(words)}")


def run_ours(words, *more):
    """Run one of our commands here or an example as a process; return whether it is one of these."""
    if words[0] == "precomp-games":
        assert main([*words, *more]) == 0
        return True
    examples = [k for k, word in enumerate(words[:2]) if re.fullmatch(r"examples/\w+\.py", word)]
    for k in examples:
        printed(pathlib.Path(words[k]).stem, *words[k + 1 :], *more, cwd=os.getcwd())
    return bool(examples)


@pytest.mark.parametrize("words", list(_commands()))
def test_shell_snippets_can_be_run(words, tmp_path, monkeypatch):
    """Nothing is carried out: flags are parsed, targets resolved, extras looked up."""
    monkeypatch.chdir(tmp_path)
    program = pathlib.Path(words[0]).name
    if run_ours(words, "--only_check_args"):
        return
    if program == "pip":
        assert words[1] == "install"
        extras = re.fullmatch(r"\.(?:\[([\w,]+)\])?", words[-1])[1]
        assert set((extras or "dev").split(",")) <= _PROJECT["optional-dependencies"].keys()
    elif program in ("sudo", "pre-commit"):  # which would change the machine
        assert words[1:2] in (["apt-get"], ["install"])
    elif words[1] == "-m" and (words[2] != "benchmarks" or len(words) == 3):
        assert importlib.util.find_spec(words[2])
    else:
        command = ["make", "--dry-run", *words[1:]]
        if words[1] == "-m":
            command = [sys.executable, *words[1:], "--only_check_args"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"


_TINY = "--penalty=0.01 --max_plies=8 --opponent_nodes=300 --analyst_nodes=600 --menu=2"
_SMALL = {
    "prepare": f"{_TINY} --play_budget=9 --match_games=2 --opponent_samples=2",
    "opponent": "--plies=6 --behind=uniform --penalty=0.01 --opponent_nodes=100 --analyst_nodes=200",
    "review": "--penalty=0.05 --learn=1",
    "estimate": "--games=2 --plies=6 --nodes=10,20 --top_k_values=2",
    "match": "--games=2 --nocontrols --exits=0",
    "spar": "--clock=0.5+0.005 --analyst_nodes=200 --menu=2 --max_evaluations=20 --play=2 --last=1",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in that has the shipped searches and games, as a checkout has them."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / _DATA, tmp_path / _DATA)


@pytest.fixture
def here(folder, monkeypatch, searches):
    """The files that snippets and stories begin with, and searches where commands keep them."""
    shutil.copy(_DATA / "karpov_sample.pgn", "karpov.pgn")
    shutil.copy(_DATA / "repertoire_sample.pgn", "mine.pgn")
    games = (_DATA / "review_sample.pgn").read_text(encoding="utf-8")
    pathlib.Path("new.pgn").write_text(games.replace('"You"', '"Me"'), encoding="utf-8")
    engine = pathlib.Path("my_engine")
    engine.write_text(f'#!/bin/sh\nexec "{find_engine()}"\n', encoding="utf-8")
    engine.chmod(0o755)
    os.mkdir("output")
    shutil.copy(searches, "output/evaluations.sqlite")
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))


def _runs():
    """Yield lists of commands: stories, and commands with flags with which no other test runs one."""
    for story in _STORIES:
        yield pytest.param(commands_in(story.read_text(encoding="utf-8")), id=story.name)
    for each in _commands():
        if re.search("precomp-games prepare .*--(opponent_plays|opponent|r_weights|export_store)=", each.id):
            yield pytest.param(list(each.values), id=each.id)


@pytest.mark.engine
@pytest.mark.slow("commands, each of which has tests of its own")
@pytest.mark.parametrize("commands", list(_runs()))
def test_commands_run_from_top_to_bottom(commands, here):
    for words in commands:
        small = _SMALL.get(words[1], "") if words[0] == "precomp-games" else ""
        assert run_ours(words, *shlex.split(small))


@pytest.mark.parametrize("story", _STORIES, ids=lambda story: story.stem)
def test_a_story_has_four_commands_and_tells_how_long_they_take(story):
    text = story.read_text(encoding="utf-8")
    message = r"^# (?:\d+ (?:second|minute|hour)s?|As long as you like)[,:].*\n\S"
    assert 1 <= len(commands_in(text)) == len(re.findall(message, text, re.MULTILINE)) <= 4
    assert [each.stem for each in _STORIES] == ["coach", "engine_author", "researcher"]


# -- the rest ----------------------------------------------------------------------------------------


def test_links_lead_somewhere():
    for page in _PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", page.read_text(encoding="utf-8"))):
            if not target.startswith(("https://", "#")):
                assert (page.parent / target.partition("#")[0]).exists(), (page, target)


def test_the_library_has_the_terms_of_the_glossary():
    folders = ("precomp_games", "algorithms", "examples")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    paths = " ".join(path.as_posix() for path in sources)
    for row in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines():
        term, _, code = row.strip("| ").split(" | ") if row.count(" | ") == 2 else ("", "", "")
        assert all(
            re.search(re.escape(word), text, re.IGNORECASE) for word in re.findall(r"\*\*(.+?)\*\*", term)
        ), row
        for name in re.findall(r"`(?:--)?([^`]+)`", code):
            attribute = name.rpartition(".")[2] if name[0].isupper() else name
            assert attribute in text or name in paths, row


def test_the_page_of_examples_lists_every_example():
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"^\| `examples/(\w+)\.py` \|", text, re.MULTILINE))) == EXAMPLES


def test_the_citation_fits_the_project():
    """CITATION.cff is YAML, which nothing here needs to read: lines suffice."""
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    own = _PROJECT["license"].partition(" AND ")[0]  # the others are of what a wheel has besides
    names = (f"title: {_PROJECT['name']}", f"  - name: {_PROJECT['authors'][0]['name']}")
    assert {"cff-version: 1.2.0", f"license: {own}", *names} <= set(lines)
