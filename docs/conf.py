"""Sphinx's settings for `make docs`: MyST for the pages of this folder, autodoc for the API."""

import dataclasses
import importlib.metadata
import inspect
import re

from absl import flags

project = "precomp-games"
author = "The precomp-games authors"
copyright = "The precomp-games authors, Apache-2.0"
release = version = importlib.metadata.version("precomp-games")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"precomp-games {release}"

default_role = "code"  # `name` in a docstring
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Game Parameters", "params_style")]
autodoc_docstring_signature = False  # signatures are Python's, not those that pybind11 writes
autodoc_typehints = "description"
autodoc_typehints_description_target = "all"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "imported-members": True}
autodoc_preserve_defaults = True

_MARKUP = re.compile(r"(?<!\\)([|*])|(?<=\w)_(?=[\s.,;:)\]]|$)")
_SECTION = re.compile(r"(Args|Attributes|Game Parameters|Raises|Returns|Yields|Example|Examples):$")
_FLAG = re.compile(r"(?<![\w`-])--\w+(=[\w.,/]*\w|=\"[^\"]*\")?")
_NAMES = re.compile(r"( +)(\w+(?:, \w+)+): ")


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text: formulas set apart by indentation are literal, |S| and * mean themselves."""
    result = []
    literal = False
    for k, line in enumerate(lines):
        apart = k == 0 or not lines[k - 1].strip()
        if not literal and apart and result and re.match(r"    +\S", line) and not _section(lines, k):
            result += ["::", ""]
            literal = True
        elif literal and line.strip() and not line.startswith("    "):
            literal = False
        result.append(line if literal else _MARKUP.sub(lambda m: "\\" + m.group(0), line))
    lines[:] = result


def _section(lines, k):
    """The heading of the section, such as Args, that an indented line belongs to; "" outside sections."""
    above = next((line for line in reversed(lines[:k]) if line.strip() and not line.startswith(" ")), "")
    return above if _SECTION.match(above) else ""


def _one_name_each(app, what, name, obj, options, lines):
    """Napoleon knows entries of one name: "sigma, sigma_pre: text" becomes two entries."""
    result = []
    k = 0
    while k < len(lines):
        entry = [lines[k]]
        k += 1
        names = _NAMES.match(entry[0])
        if not names or _section(lines, k - 1) not in ("Args:", "Attributes:", "Game Parameters:"):
            result += entry
            continue
        while k < len(lines) and lines[k].startswith(names[1] + " "):
            entry.append(lines[k])
            k += 1
        for one in names[2].split(", "):
            result += [f"{names[1]}{one}: {entry[0][names.end() :]}", *entry[1:]]
    lines[:] = result


def _arguments(app, what, name, obj, options, lines):
    """Give a class its arguments: the fields of a dataclass, or else those in its constructor's docstring."""
    if what != "class" or "Args:" in lines:
        return
    if dataclasses.is_dataclass(obj):
        lines[:] = ["Args:" if line == "Attributes:" else line for line in lines]
    elif text := getattr(vars(obj).get("__init__"), "__doc__", None):
        _, heading, sections = inspect.cleandoc(text).partition("Args:\n")
        lines += ["", *f"{heading}{sections}".splitlines()]


def _once(app, what, name, obj, skip, options):
    """Skip names of `search` and `lookahead` on the page of `algorithms`: they have their own pages."""
    module = getattr(obj, "__module__", None) or ""
    elsewhere = module.startswith(("precomp_games.algorithms.search", "precomp_games.algorithms.lookahead"))
    return True if app.env.docname == "api/algorithms" and elsewhere else None


def _command(app, what, name, obj, options, lines):
    """Describe a command and its flags: a list of terms with their texts in `--help`."""
    if what != "module" or not name.startswith("precomp_games.commands."):
        return
    text = []
    for line in lines:
        if line.startswith("  precomp-games"):
            text += ["", "::", "", f"    {line.strip()}"]
        else:  # a list's bullet means one here
            text.append(_FLAG.sub(r"``\g<0>``", re.sub(r"^(  )\\\*", r"\1*", line)))
    own = flags.FlagValues()
    obj.define(own)
    for flag in sorted(own):
        described = _MARKUP.sub(lambda m: "\\" + m.group(0), " ".join(own[flag].help.split()))
        described = _FLAG.sub(r"``\g<0>``", described)
        default = f" (default: ``{own[flag].default_as_str}``)" if own[flag].default_as_str else ""
        text += [f"``--{flag}``", f"    {described}{default}", ""]
    lines[:] = text


def setup(app):
    """Connect the functions of this module to Sphinx."""
    app.connect("autodoc-skip-member", _once)
    for priority, change in enumerate((_arguments, _one_name_each, _plain, _command), start=400):
        app.connect("autodoc-process-docstring", change, priority=priority)  # before napoleon's, at 500
