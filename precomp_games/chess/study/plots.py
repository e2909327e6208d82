"""Plots in a page: SVG from outside, of which only shapes and text are taken.

A page's content security policy forbids style attributes, so what these say stands in attributes of its own.
The colors that plots have where nobody chooses others become the page's, light or dark.
Whatever is not known to be harmless is left out: elements, attributes and values that are not listed here,
links to anything but the plot's own parts. Names of parts get a prefix, since a page may have several plots.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

from markupsafe import Markup, escape

from precomp_games._support.validation import ArgumentError, plain_text

_MOST = 1 << 20  # characters
_DEEP = 100  # elements within each other
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = re.compile("circle|clipPath|defs|ellipse|g|line|path|polygon|polyline|rect|text|title|tspan|use")
_WITH_TEXT = frozenset(("text", "title", "tspan"))
_ATTRIBUTES = re.compile(
    "[cdr][xy]|[drxy]|[xy][12]|fill(-opacity)?|font-(size|weight)|height|opacity|points|text-anchor|transform|"
    "stroke(-(dasharray|dashoffset|linecap|linejoin|miterlimit|opacity|width))?|viewBox|width"
)
_PARTS = frozenset(("clip-path", "fill", "stroke"))  # that may name a part of the plot
_VALUE = re.compile(r"[\w\s#%.,+()-]*", re.ASCII)
_NAME = re.compile(r"[A-Za-z][\w.-]{0,80}", re.ASCII)
_URL = re.compile(r"url\(#([A-Za-z][\w.-]{0,80})\)", re.ASCII)
_COLORS = {  # matplotlib's, and the page's
    "#000000": "currentColor",
    "black": "currentColor",
    "#ffffff": "var(--card)",
    "white": "var(--card)",
    "#1f77b4": "var(--reply)",
    "#ff7f0e": "var(--other)",
    "#2ca02c": "var(--accent)",
    "#d62728": "var(--warn)",
    "#b0b0b0": "var(--line)",
}
_FONT_SIZE = re.compile(r"(?:^|\s)(\d+(?:\.\d+)?(?:px|pt)?)(?:\s|/|$)")


def embedded_plot(svg: str, title: str, prefix: str) -> Markup:
    """An SVG picture as it can stand in a page.

    Args:
      svg: the picture's file.
      title: what it shows, for those who do not see it.
      prefix: of its parts' names.

    Raises:
      ValueError: no SVG, too much of it, or with entities.
    """
    if len(svg) > _MOST or "<!ENTITY" in svg.upper():
        raise ArgumentError(f"expected plots as SVG of at most {_MOST >> 20} MiB without entities")
    try:
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, ValueError) as error:
        raise ArgumentError(f"expected plots as SVG, got what cannot be read ({error})") from None
    if root.tag != f"{_SVG}svg" or "viewBox" not in root.attrib:
        raise ArgumentError(f"expected plots as SVG with a viewBox, got {root.tag[:40]!r}")
    for size in ("width", "height"):  # the page's
        root.attrib.pop(size, None)
    label = escape(title)
    # What matplotlib's style element says of all lines.
    begin = f'<svg role="img" aria-label="{label}" stroke-linejoin="round" stroke-linecap="butt"'
    return Markup("".join((begin, *_attributes(root, prefix), ">", *_inside(root, prefix, _DEEP), "</svg>")))


def _inside(element: ElementTree.Element, prefix: str, deep: int) -> Iterator[str]:
    """The text of what is in an element."""
    name = element.tag.removeprefix(_SVG)
    if name in _WITH_TEXT and element.text:
        yield str(escape(plain_text(element.text)))
    for child in element if deep else ():
        kind = child.tag.removeprefix(_SVG) if isinstance(child.tag, str) else ""
        if _ELEMENTS.fullmatch(kind):
            yield f"<{kind}"
            yield from _attributes(child, prefix)
            yield ">"
            yield from _inside(child, prefix, deep - 1)
            yield f"</{kind}>"
        if name in _WITH_TEXT and child.tail:
            yield str(escape(plain_text(child.tail)))


def _attributes(element: ElementTree.Element, prefix: str) -> Iterator[str]:
    """An element's attributes, those of its style among them."""
    given = dict(element.attrib)
    for entry in given.pop("style", "").split(";"):
        name, _, value = entry.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font":
            size = _FONT_SIZE.search(value)
            name, value = "font-size", size[1] if size else ""
        given[name] = value
    for name, value in given.items():
        if name == "id" and _NAME.fullmatch(value):
            yield f' id="{prefix}{value}"'
        elif name in (_XLINK, "href") and _NAME.fullmatch(value[1:]) and value[0] == "#":
            yield f' href="#{prefix}{value[1:]}"'
        elif name in _PARTS and (part := _URL.fullmatch(value)):
            yield f' {name}="url(#{prefix}{part[1]})"'
        elif _ATTRIBUTES.fullmatch(name) and value and _VALUE.fullmatch(value) and "url" not in value.lower():
            yield f' {name}="{_COLORS.get(value.lower(), value)}"'
