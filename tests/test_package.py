"""Properties of the package as a whole: names, imports, documentation, size."""

import ast
import functools
import graphlib
import importlib
import importlib.metadata
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import precomp_games

_ROOT = Path(__file__).resolve().parents[1]
_PYPROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# Every module of the library in the checkout: {dotted name: file}.
_SOURCES = {
    ".".join((*package, *path.relative_to(_ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for package, folder in (((), "precomp_games"), (("precomp_games",), "algorithms"))
    for path in sorted((_ROOT / folder).rglob("*.py"))
}


@functools.cache
def _tree(module: str) -> ast.Module:
    """Parse a module when it is asked for, since parsing all of them would delay the collection of tests."""
    path = _SOURCES[module]
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _imports(module: str) -> Iterator[str]:
    """Yield the names that `module` imports anywhere, in functions and under `if TYPE_CHECKING` as well."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            is_package = _SOURCES[module].name == "__init__.py"
            package = module if is_package else module.rpartition(".")[0]
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


_OURS = ("precomp_games", "algorithms", "benchmarks", "examples", "tests", "tools")


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in _OURS


# The packages of the library: each may import from those before it, and nothing else of the project.
_FLOORS = (
    *("_support", "policies", "tree", "cluster", "games", "meta_game", "algorithms"),
    *("chess.game", "chess.engines", "chess.data", "chess.play", "chess.model", "chess.plan", "chess.study"),
    *("commands", "__main__"),
)


def _floor(name: str) -> int:
    """Return the index of a dotted name's package in `_FLOORS`; -1 if it is in none, as faces are."""
    return next(
        (k for k, floor in enumerate(_FLOORS) if f"{name}.".startswith(f"precomp_games.{floor}.")), -1
    )


# The public doors of the library: what an example imports, a user can.
_FACES = {"precomp_games", "precomp_games.algorithms", "precomp_games.chess"}
_FACES |= {f"precomp_games.algorithms.{name}" for name in ("efce", "lookahead", "search")}


def _run(code: str) -> dict[str, list[str]]:
    """Run `code` in a fresh interpreter and return the JSON object that it prints last."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=_ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_version_is_that_of_pyproject():
    # After a change of version: make install.
    assert importlib.metadata.version("precomp-games") == _PYPROJECT["project"]["version"]


def test_what_modules_import_is_required_and_nothing_else():
    """An extra's packages are imported within functions, or by a module that only workers of it import."""

    def distributions(*lists: str) -> set[str]:
        return {re.split(r"[\[<>=]", text)[0].lower().replace("_", "-") for each in lists for text in each}

    names = {"open_spiel": "open-spiel", "pyspiel": "open-spiel", "absl": "absl-py", "google": "protobuf"}
    names |= {name: name.replace("_", "-") for name in ("annotated_types", "charset_normalizer")}
    project = _PYPROJECT["project"]
    extras = map(project["optional-dependencies"].get, ("cluster", "frames", "people", "study"))
    optional = {"dask", "cloudpickle"} | distributions(*extras)
    tops = {name.partition(".")[0] for module in _SOURCES for name in _imports(module)}
    found = {names.get(top, top) for top in tops - set(sys.stdlib_module_names) - {"precomp_games"}}
    required = distributions(project["dependencies"])
    assert found - optional == required
    assert not required & optional


def test_next_major_versions_are_left_out_but_where_none_tells_a_break():
    extras = _PYPROJECT["project"]["optional-dependencies"]
    listed = _PYPROJECT["project"]["dependencies"] + extras["frames"] + extras["solvers"] + extras["study"]
    assert [text for text in listed if ",<" not in text] == ["markupsafe>=2.0"]


def test_licenses_of_what_the_wheel_has():
    """As in the installed metadata (after a change: make install); make try-wheel asks a wheel."""
    vendor = "precomp_games/chess/study/vendor/cm-chessboard"
    vendored = (_ROOT / vendor / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"MIT|CC BY-SA 3\.0", vendored) == ["MIT", "CC BY-SA 3.0"]
    message = importlib.metadata.metadata("precomp-games")
    assert message["License-Expression"] == "Apache-2.0 AND MIT AND CC-BY-SA-3.0 AND CC0-1.0"
    files = message.get_all("License-File")
    openings = "precomp_games/chess/study/vendor/chess-openings/README.md"
    assert sorted(files) == sorted(["LICENSE", openings, f"{vendor}/LICENSE", f"{vendor}/README.md"])
    assert "CC0 1.0" in (_ROOT / openings).read_text(encoding="utf-8")
    assert "creativecommons.org/licenses/by-sa/3.0" in vendored


def test_installed_modules_are_those_of_the_checkout():
    installed = {m.name for m in pkgutil.walk_packages(precomp_games.__path__, "precomp_games.")}
    assert installed | {"precomp_games"} == _SOURCES.keys()


def test_algorithms_is_no_package_of_its_own():
    with pytest.raises(ImportError, match=r"imported as precomp_games\.algorithms, got algorithms$"):
        importlib.import_module("algorithms")


# Costs seconds: imports in processes of their own.
def test_what_imports_bring_about():
    """No process and no connection; and one part of the library leaves the others alone."""
    seen = _run(f"""
import importlib, json, sys

# Events that a program or a connection cannot be started without.
watched = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty",
           "pty.spawn", "socket.connect", "socket.getaddrinfo", "socket.bind")
seen, loaded = [], {{}}
def watch(event, args):
    if event in watched:
        seen.append(f"{{event}}: {{args!r:.200}}")

sys.addaudithook(watch)
for name in ["precomp_games", "precomp_games.algorithms", *{sorted(_SOURCES)!r}]:
    importlib.import_module(name)
    loaded.setdefault(name, list(sys.modules))
print(json.dumps(loaded | {{"seen": seen}}))
""")
    assert seen["seen"] == []
    chess = _run("import json, sys, precomp_games.chess; print(json.dumps({'m': list(sys.modules)}))")
    others = {"precomp_games.chess", "chess"}
    assert not {"precomp_games.algorithms", *others} & set(seen["precomp_games"])
    assert not others & set(seen["precomp_games.algorithms"])
    # scipy.optimize takes half a second.
    assert "scipy.optimize" not in chess["m"]


def test_imports_run_one_way():
    for module in _SOURCES.keys() - _FACES:
        ours = {name for name in _imports(module) if _is_ours(name)}
        wrong = sorted(name for name in ours if not 0 <= _floor(name) <= _floor(module))
        assert wrong == [], f"{module} may import what stands before it in _FLOORS"


def test_no_modules_import_each_other_in_a_circle():
    graph = {}
    for module in _SOURCES:
        found = {name if name in _SOURCES else name.rpartition(".")[0] for name in _imports(module)}
        graph[module] = found & _SOURCES.keys() - {module}
    graphlib.TopologicalSorter(graph).prepare()  # an error names a circle


def _reached(example: ast.Module) -> Iterator[str]:
    """Yield an example's imports from the project that are in no face's `__all__` and no command's."""
    public = _FACES | {f"{face}.{name}" for face in _FACES for name in importlib.import_module(face).__all__}
    for node in ast.walk(example):
        origins = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            origins = sorted(names - public) if node.module in _FACES else [node.module]
        for origin in origins:
            if _is_ours(origin) and not f"{origin}.".startswith("precomp_games.commands."):
                yield origin


def _first_import(path: Path) -> str:
    """Return an example's first import outside of Python's own, followed through the other examples."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names]
    first = next(name for name in names if name not in sys.stdlib_module_names)
    other = path.with_name(f"{first}.py")
    return _first_import(other) if other.exists() and first != "common" else first


# Experiments with models of people, which fit them in ways of their own.
_INSIDE = {"opponent_model", "people", "people_check", "preparation_transfer"}


def test_examples_import_from_the_faces_and_first_what_tells_of_interrupts():
    """That is examples/common.py, before anything that takes a while to import."""
    for path in (_ROOT / "examples").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        reached = [name for name in _reached(ast.parse(text)) if path.stem not in _INSIDE]
        assert reached == [], f"{path}: names that no face has in its __all__"
        if '\nif __name__ == "__main__":\n' in text:
            assert _first_import(path) == "common", path


# Of things that no person says, "told" and "said" are no names either.
_NO_WORDS = re.compile(
    r'^ *r?"""\W*(What|Whether|Those|How|Who|Where)\b.*|\b(told|said)(_\w+)? ?[=(\[].*', re.MULTILINE
)


@pytest.mark.parametrize(
    "folder", ["precomp_games", "algorithms", "examples", "tests", "tools", "benchmarks", "docs"]
)
def test_docstrings_begin_with_a_verb_or_a_noun(folder):
    """CONTRIBUTING.md has the rule, which holds for the strings below constants as well."""
    found = []
    for path in sorted((_ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for match in _NO_WORDS.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(_ROOT)}:{line}: {match[0].strip()}")
    assert found == []


def test_exported_names_exist_and_are_documented():
    """Of functions and classes, ruff asks for docstrings."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in _SOURCES.values())
    for module in _SOURCES:
        loaded = importlib.import_module(module)
        names = getattr(loaded, "__all__", [])
        assert len(names) == len(set(names)), f"{module}: a name twice in __all__"
        for name in names:
            value, below = getattr(loaded, name), re.search(rf'^{name}\b.* = .*\n"""', text, re.M)
            has_docstring = isinstance(value, types.FunctionType | types.ModuleType | type | Dispatcher)
            assert value.__doc__ if has_docstring else below, f"{module}.{name} is not documented"


# Checks that turn what is given into a plain number, text or array.
_PLAIN = {
    *("check_boolean", "check_evaluation", "check_indices", "check_integer", "check_memory", "check_number"),
    *("check_numbers", "check_pair", "check_path", "check_penalties", "check_player", "check_ranking"),
    *("check_seed", "real_array"),
}
# Whose numbers are looked at where they stand: cards of fsrs.
_LOOKED_AT = {"precomp_games.chess.study.drill": 1}


def test_what_a_check_returns_is_what_is_kept():
    """An int8 that passes for a number is one that overflows, where it is kept itself."""
    for module in _SOURCES:
        thrown_away = [
            f"line {node.lineno}: {ast.unparse(node)}"
            for node in ast.walk(_tree(module))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            if ast.unparse(node.value.func).rpartition(".")[2] in _PLAIN
        ]
        assert len(thrown_away) == _LOOKED_AT.get(module, 0), (module, thrown_away)
