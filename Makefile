# See BUILD.md. `make` alone lists the targets.

PYTHON ?= python3
# Added to the command of `make run` and `make bench`, and to pytest's in the targets that run tests.
ARGS ?=
PYTEST_ARGS ?=
# Where Debian's package puts the engine, a folder that root's PATH lacks.
DEBIAN_ENGINE ?= /usr/games/stockfish
# Not empty: a machine where no engine is to be had fails (CI).
REQUIRE_ENGINE ?=
# Not empty: a machine where no browser is to be had fails (CI).
REQUIRE_BROWSER ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-for
WHEEL := build/wheel
# Files go to the cores whole, in the order of pyproject.toml's testpaths.
PYTEST := -m pytest -n auto --dist loadfile --no-loadscope-reorder
# What `make check` and `make test-oldest` run: no example as a process, no engine, no browser.
FAST := $(PYTEST) -m "not slow and not engine and not browser" --ignore=tests/examples --ignore=tests/test_docs.py

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help run check test test-all test-oldest bench soak docs install engine browser lint format types wheel try-wheel clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s%s\n", $$1, $$2 }' Makefile

run: install engine ## Prepare White against Stockfish and write the book to output/chess_preparation.
	@$(BIN)/python examples/chess_preparation.py --output_dir=output/chess_preparation --report $(ARGS)

check: install lint types ## The quick loop: ruff, mypy and the fast tests.
	@echo '== pytest, the fast tests'
	$(BIN)/python $(FAST) $(PYTEST_ARGS)

test: built ## That everything works here: lint, types, the wheel, and each behavior once or a few times.
	@echo '== pytest, each behavior'
	$(BIN)/python $(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-all: built ## All tests, and properties with eight times as many examples; CI runs these.
	@echo '== pytest, everything'
	$(BIN)/python $(PYTEST) --hypothesis-profile=all $(PYTEST_ARGS)

.PHONY: built
built: install lint types try-wheel engine browser

bench: install ## Run the benchmarks; each prints ratios.
	@$(BIN)/python -m benchmarks $(ARGS)

soak: install engine ## Do faults to runs for two hours, and fuzz inputs; see docs/reliability.md.
	@$(BIN)/python -m tools.soak $(ARGS)
	$(BIN)/python -m tools.fuzz --report=output/soak/fuzz.json --keep=output/soak/fuzz

docs: install ## Build the pages and the API reference into build/docs; a warning is an error.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	echo 'Open build/docs/index.html'

install: $(STAMP) ## Set up .venv, with the library installed editable.

# Kept bytecode is worth a minute to the tests, which start many processes: also where the machine keeps none.
unexport PYTHONDONTWRITEBYTECODE

# Shell function `apt_install PACKAGE`: installs a Debian package if that can be done without asking anything.
# Leaves in $why what kept it from doing so.
define APT_INSTALL
apt_install() {
  local as_root=() log
  why="no apt-get here"
  command -v apt-get >/dev/null || return 1
  if [ "$$(id -u)" -ne 0 ]; then
    why="neither root nor sudo without a password"
    sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  log=$$(mktemp)
  apt() {
    "$${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get --yes --no-install-recommends -o DPkg::Lock::Timeout=120 "$$@" </dev/null >>"$$log" 2>&1
  }
  echo "== apt-get install $$1"
  why="apt-get failed"
  if apt install "$$1" || { apt update; apt install "$$1"; }; then why=; fi
  [ -z "$$why" ] || why="apt-get: $$(tail -n 1 "$$log")"
  rm -f "$$log"
  [ -z "$$why" ]
}
endef

# --- .venv ------------------------------------------------------------------------------------------------

# The stamp holds the folder that .venv was made for: a copied or moved checkout has a .venv that still runs the
# old one's code, and is given its own.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

$(STAMP): pyproject.toml
	@$(APT_INSTALL)
	fail() { echo "make: $$1" >&2; exit 1; }
	command -v "$(PYTHON)" >/dev/null ||
	  fail "no $(PYTHON) here: install Python 3.11 or newer (Debian: apt-get install python3 python3-venv)."
	version=$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
	  fail "$(PYTHON) is Python $$version; 3.11 or newer is needed (make PYTHON=python3.11 ...)."
	has_venv() { "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; }
	if ! has_venv; then
	  why="$(PYTHON) is not Debian's"
	  [ "$$("$(PYTHON)" -c 'import sys; print(sys.base_prefix)')" != /usr ] ||
	    apt_install "python$$version-venv" || true
	  has_venv || fail "$(PYTHON) has no venv: apt-get install python$$version-venv (not done: $$why)."
	fi
	echo '== .venv (made once, again when pyproject.toml changes; takes a minute or two)'
	"$(PYTHON)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[dev]'
	echo '$(CURDIR)' >$@

# --- The oldest versions -----------------------------------------------------------------------------------

OLDEST := build/oldest

# "name>=1.2" of each requirement that the library and its tests have, as pip's "name==1.2".
define LOWER_BOUNDS
import re, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
for requirement in project["dependencies"] + extras["solvers"]:
    print(re.sub(r"(\[.*\])?>=", "==", requirement))
endef
export LOWER_BOUNDS

test-oldest: ## The fast tests with the oldest versions that pyproject.toml allows.
	@echo '== $(OLDEST)'
	"$(PYTHON)" -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -c "$$LOWER_BOUNDS" >$(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 \
	  --constraint $(OLDEST)/constraints.txt --editable '.[solvers]' 'pytest>=8' pytest-xdist hypothesis selenium
	echo '== pytest, the fast tests'
	$(OLDEST)/bin/python $(FAST) $(PYTEST_ARGS)

# --- The engine -------------------------------------------------------------------------------------------

engine: ## See that Stockfish is there; install Debian's where that may be done.
	@$(APT_INSTALL)
	missing() { echo "make: no engine: $$1" >&2; [ -z "$(REQUIRE_ENGINE)" ] || exit 1; exit 0; }
	if [ -n "$${STOCKFISH:-}" ]; then
	  command -v "$$STOCKFISH" >/dev/null ||
	    missing "STOCKFISH=$$STOCKFISH is no program; correct it or unset it."
	elif ! command -v stockfish >/dev/null && [ ! -x "$(DEBIAN_ENGINE)" ]; then
	  apt_install stockfish ||
	    missing "apt-get install stockfish, or set STOCKFISH to an engine's path (not done: $$why)."
	  [ -x "$(DEBIAN_ENGINE)" ] || missing "Debian's package is there, but $(DEBIAN_ENGINE) is not."
	fi

# --- The browser ------------------------------------------------------------------------------------------

browser: ## See that Chromium is there, for the tests of pages; install Debian's where that may be done.
	@$(APT_INSTALL)
	missing() { echo "make: no browser: $$1" >&2; [ -z "$(REQUIRE_BROWSER)" ] || exit 1; exit 0; }
	for program in chromium:chromium chromedriver:chromium-driver; do
	  command -v "$${program%:*}" >/dev/null || apt_install "$${program#*:}" ||
	    missing "apt-get install $${program#*:} (not done: $$why); tests of pages are skipped."
	done

# --- Checks -----------------------------------------------------------------------------------------------

lint: install ## ruff: rules and formatting; and the ceilings of CONTRIBUTING.md.
	@echo '== ruff'
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m tools.ceilings

format: install ## Let ruff correct what it can, and format.
	@$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: install ## mypy: the library, tests, tools, benchmarks and examples.
	@echo '== mypy'
	$(BIN)/mypy precomp_games tests tools benchmarks examples

# What setuptools left goes first: it would put modules deleted since into the new wheel.
wheel: install ## Build the wheel into build/dist and unpack it, installed, into build/wheel.
	@echo '== wheel'
	rm -rf build/lib build/bdist.* build/dist $(WHEEL)
	pip="$(BIN)/python -m pip --quiet --disable-pip-version-check"
	$$pip wheel --no-deps --no-build-isolation --wheel-dir build/dist .
	$$pip install --no-deps --target $(WHEEL) build/dist/*.whl

define TRY_WHEEL
import importlib, importlib.metadata, importlib.resources, pathlib, pkgutil, sys
import precomp_games, precomp_games.algorithms, precomp_games.chess

home = pathlib.Path(sys.argv[1])
names = [m.name for m in pkgutil.walk_packages(precomp_games.__path__, "precomp_games.")]
for name in ["precomp_games", *names]:
    path = importlib.import_module(name).__file__
    if not pathlib.Path(path).is_relative_to(home):
        sys.exit(f"{name} was imported from {path}, not from the wheel in {home}")
if not importlib.resources.files(precomp_games).joinpath("py.typed").is_file():
    sys.exit("the wheel has no py.typed")
metadata = importlib.metadata.metadata("precomp-games")
version, told = metadata["Version"], [metadata["License-Expression"], *metadata.get_all("License-File")]
kept = importlib.metadata.files("precomp-games")
if "MIT AND CC-BY-SA" not in told[0] or any(not any(str(f).endswith(t) for f in kept) for t in told[1:]):
    sys.exit(f"the wheel's licenses are {told}")
print(f"precomp-games {version}: {1 + len(names)} modules imported from the wheel")
endef
export TRY_WHEEL

try-wheel: wheel ## Import every module of the wheel from outside the checkout.
	@echo '== the wheel, outside the checkout'
	outside=$$(mktemp -d)
	trap 'rm -rf "$$outside"' EXIT
	cd "$$outside"
	PYTHONPATH="$(CURDIR)/$(WHEEL)" "$(CURDIR)/$(BIN)/python" -c "$$TRY_WHEEL" "$(CURDIR)/$(WHEEL)"

clean: ## Remove .venv, build and caches; output/ stays.
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
