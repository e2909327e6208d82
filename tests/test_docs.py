"""Pages: every snippet runs and prints the text after it, and links lead somewhere.

Code stands between fences that name its language. Python snippets of a page share one namespace, in order; a
text block right after one is what it prints. A "python engine" fence needs a real engine. Of shell
snippets, examples are run, in a temporary folder and with smaller settings where they would take minutes; of
`make`, `pip` and the like it is checked that they could do what they are told to.
"""

import contextlib
import dataclasses
import io
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.examples.launcher import EXAMPLES, command_of, printed

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_PAGES = [*sorted(_ROOT.glob("*.md")), *sorted((_ROOT / "docs").rglob("*.md"))]
_DATA = pathlib.Path("precomp_games", "commands", "data")
_DIRECTIVES = {"{eval-rst}", "{toctree}"}  # Sphinx's directives in fences
_FENCE = re.compile(r"^```([\w{}-]*)( engine)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXAMPLE = re.compile(r"examples/\w+\.py")
_WITH_FLAGS = r"`((?:(?:python )?examples/\w+\.py|precomp-games \w+) --[^`]+)`"
_BOOK = "--penalty=0.01 --max_plies=12 --opponent_nodes=300 --analyst_nodes=600 --menu=2 --play_budget=24"
# Added to an example's flags, of which the last ones count, where it would take minutes.
_SMALL = {
    "chess_preparation": f"{_BOOK} --match_games=2 --opponent_samples=2",
    "book_size": f"{_BOOK} --games=2 --sizes=2,4",
    "calibrate_evaluation": (
        "--sides=white --r_values=30 --test_r_values=60 --fens='8/8/8/8/4k3/8/4P3/4K3 w - - 0 1' "
        "--test_fens='8/8/8/4k3/8/8/4P3/3QK3 w - - 0 1' --positions=4 --exits=2 --games=2 --menu=2 "
        "--max_evaluations=15 --budget=3 --opponent_nodes=100 --analyst_nodes=200"
    ),
    "chess_equilibrium": "--penalty=0.05 --max_plies=8 --opponent_nodes=100 --analyst_nodes=200",
    "sparring": "--opponent_nodes=100 --analyst_nodes=200 --menu=2 --max_evaluations=20 --play=2 --last=1",
    "estimate_opponent": "--games=2 --plies=6 --opponent_samples=3",
    "randomness_vs_precomputation": "--penalty=0.05 --max_plies=8 --opponent_nodes=100 --analyst_nodes=200",
}
# What would change the machine.
_ONLY_SAID = ("sudo apt-get install stockfish", "sudo apt-get install chromium chromium-driver")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its fence, `gap` what stands between it and the one before."""

    page: pathlib.Path
    line: int
    language: str
    text: str
    gap: str
    engine: bool


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        gap = text[end : match.start()]
        found.append(Block(page, line, match[1], match[3], gap, engine=bool(match[2])))
        end = match.end()
    return found


def commands():
    """Yield (where, command) of every command in shell snippets; comments are left out."""
    for page in _PAGES:
        for block in blocks(page):
            if block.language == "bash":
                lines = block.text.replace("\\\n", " ").splitlines()
                for line in lines:
                    if words := shlex.split(line, comments=True):
                        yield pytest.param(words, id=f"{page.name}: {shlex.join(words)}")


def inline_commands():
    """Examples and commands with flags in running text."""
    for page in _PAGES:
        for command in re.findall(_WITH_FLAGS, page.read_text(encoding="utf-8")):
            yield pytest.param(shlex.split(command), id=f"{page.name}: {command}")


def run(command, cwd, timeout=300):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout)
    assert result.returncode == 0, f"{shlex.join(map(str, command))}\n{result.stdout}{result.stderr}"
    return result


def example_of(words):
    """Return the example that a command runs and its flags, if it runs one: each command of ours has one."""
    if words[0] == "precomp-games":
        (example,) = (name for name in EXAMPLES if command_of(name) == words[1])
        return f"examples/{example}.py", words[2:]
    for k, word in enumerate(words[:2]):
        if _EXAMPLE.fullmatch(word):
            return word, words[k + 1 :]
    return None


def name_of(page):
    return page.relative_to(_ROOT).as_posix()


# -- what is a snippet -----------------------------------------------------------------------------


def test_code_is_fenced_and_says_its_language():
    for page in _PAGES:
        text = page.read_text(encoding="utf-8")
        found = blocks(page)
        assert {block.language for block in found} <= {"python", "bash", "text"} | _DIRECTIVES, page
        assert all(block.language == "python" for block in found if block.engine), page
        assert text.count("\n```") + text.startswith("```") == 2 * len(found), page
        indented = re.search(r"\n\n(    |\t)\S.*", _FENCE.sub("", text))
        assert not indented, f"{page}: indented code: is it a snippet? {indented}"


# -- Python ----------------------------------------------------------------------------------------


def _pages_of_python():
    for page in _PAGES:
        found = [block for block in blocks(page) if block.language == "python"]
        if found:
            yield pytest.param(page, False, id=name_of(page))
        if any(block.engine for block in found):
            yield pytest.param(page, True, id=f"{name_of(page)} with an engine", marks=pytest.mark.engine)


@pytest.mark.parametrize(("page", "engine"), list(_pages_of_python()))
def test_python_snippets(page, engine, tmp_path, monkeypatch):
    """In a folder that has the shipped searches, as a checkout has them."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(_ROOT / _DATA, tmp_path / _DATA)
    namespace = {"__name__": "snippet"}
    said = None
    for block in blocks(page):
        if block.language == "python" and (engine or not block.engine):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * block.line + block.text, page, "exec"), namespace)
            said = output.getvalue()
        elif said is not None and block.language == "text" and not block.gap.strip():
            assert block.text == said, f"{page.name}, line {block.line}"


# -- the shell -------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [*commands(), *inline_commands()])
def test_shell_snippets_can_be_run(words, tmp_path):
    """Nothing is carried out: flags are parsed, targets resolved, metadata read."""
    program = pathlib.Path(words[0]).name
    if example := example_of(words):
        printed(pathlib.Path(example[0]).stem, *example[1], "--only_check_args", cwd=tmp_path)
    elif program == "make":
        run(["make", "--dry-run", *words[1:]], _ROOT)
    elif program.startswith("python") and words[1] == "-m":
        own = (_ROOT / words[2]).is_dir()
        run([sys.executable, "-m", words[2], "--only_check_args" if own else "--help", *words[3:]], _ROOT)
    elif program == "pip":
        assert words[1] == "install"
        # The metadata is enough to know what would be installed; nothing is built or fetched.
        copy = shutil.copytree(_ROOT, tmp_path / "checkout", ignore=_not_needed)
        options = ("--quiet", "--dry-run", "--no-deps", "--no-build-isolation", "--no-index")
        run([sys.executable, "-m", "pip", "install", *options, *words[2:]], copy)
    elif program == "pre-commit":
        assert words[1:] == ["install"]
        run([sys.executable, "-m", "pre_commit", "validate-config"], _ROOT)
    else:
        assert shlex.join(words) in _ONLY_SAID


def _not_needed(folder, names):
    kept = {"precomp_games", "algorithms", "pyproject.toml", "README.md", "LICENSE"}
    return set(names) - kept if pathlib.Path(folder) == _ROOT else set(names) & {"__pycache__"}


def _to_run():
    for param in commands():
        (words,) = param.values
        if example := example_of(words):
            small = _SMALL.get(pathlib.Path(example[0]).stem)
            marks = [pytest.mark.engine] if small else []
            flags = [*example[1], *shlex.split(small or "")]
            if {flag.partition("=")[0] for flag in example[1]} & {"--keep", "--plan", "--price"}:
                flags.remove("--menu=2")  # these need the whole tree
            yield pytest.param(example[0], flags, id=param.id, marks=marks)


@pytest.mark.parametrize(("example", "flags"), list(_to_run()))
def test_shell_snippets_run(example, flags, tmp_path, searches):
    """Each with the searches of those before, at the place where examples keep them."""
    folder, name = tmp_path / "examples", pathlib.Path(example).stem
    shutil.copytree(_ROOT / "examples", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(_ROOT / _DATA, tmp_path / _DATA)
    kept = tmp_path / "output" / "evaluations.sqlite"
    kept.parent.mkdir()
    shutil.copy(searches, kept)
    printed(name, *flags, cwd=tmp_path, folder=folder)
    shutil.copy(kept, searches)


# -- the rest --------------------------------------------------------------------------------------


def test_links_lead_somewhere():
    for page in _PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", page.read_text(encoding="utf-8"))):
            if not target.startswith(("https://", "#")):
                assert (page.parent / target.partition("#")[0]).exists(), (page, target)


def test_the_page_of_examples_lists_every_example():
    text = (_ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"^\| `examples/(\w+)\.py` \|", text, re.MULTILINE))) == EXAMPLES


def test_the_citation_fits_the_project():
    """CITATION.cff is YAML, which nothing here needs to read: lines suffice."""
    lines = (_ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "cff-version: 1.2.0" in lines
    assert f"title: {project['name']}" in lines
    own = project["license"].partition(" AND ")[0]  # the others are of what a wheel has besides
    assert f"license: {own}" in lines
    assert f"  - name: {project['authors'][0]['name']}" in lines
