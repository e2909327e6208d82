"""How Sphinx makes the pages of `make docs`: MyST for what stands in this folder, autodoc for the API."""

import importlib.metadata
import re

project = "precomp-games"
author = "The precomp-games authors"
copyright = "The precomp-games authors, Apache-2.0"
release = version = importlib.metadata.version("precomp-games")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"precomp-games {release}"

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Game Parameters", "params_style")]
autodoc_typehints = "description"
autodoc_typehints_description_target = "all"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "imported-members": True}
autodoc_preserve_defaults = True

_MARKUP = re.compile(r"(?<!\\)([|*])|(?<=\w)_(?=[\s.,;:)\]]|$)")


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text: formulas set apart by indentation are literal, |S| and * mean themselves."""
    result = []
    literal = False
    for k, line in enumerate(lines):
        apart = k == 0 or not lines[k - 1].strip()
        if not literal and apart and result and re.match(r"    +\S", line) and not _in_section(lines, k):
            result += ["::", ""]
            literal = True
        elif literal and line.strip() and not line.startswith("    "):
            literal = False
        result.append(line if literal else _MARKUP.sub(lambda m: "\\" + m.group(0), line))
    lines[:] = result


def _in_section(lines, k):
    """Whether a line belongs to Args, Raises and the like, which are indented too."""
    above = next((line for line in reversed(lines[:k]) if line.strip() and not line.startswith(" ")), "")
    return bool(re.match(r"(Args|Attributes|Raises|Returns|Yields|Example|Examples):$", above))


def _once(app, what, name, obj, skip, options):
    """What `algorithms` has of `search` and `lookahead` is described on their own pages."""
    module = getattr(obj, "__module__", None) or ""
    elsewhere = module.startswith(("precomp_games.algorithms.search", "precomp_games.algorithms.lookahead"))
    return True if app.env.docname == "api/algorithms" and elsewhere else None


def setup(app):
    """What Sphinx calls."""
    app.connect("autodoc-skip-member", _once)
    app.connect("autodoc-process-docstring", _plain, priority=400)  # before napoleon's, at 500
