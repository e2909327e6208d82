"""Hold each package to its ceilings of code lines, modules and public names: `python -m tools.ceilings`.

The ceilings are the table in CONTRIBUTING.md. A code line is neither blank nor a comment nor in a docstring.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys

_ROOT = pathlib.Path(__file__).parents[1]
_ROW = re.compile(r"^\| `([\w/]+)/` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def size(path: pathlib.Path) -> tuple[int, int]:
    """Return the code lines and the names in `__all__` of a module; names count in faces alone."""
    text, names = path.read_text("utf-8"), 0
    lines = {n for n, line in enumerate(text.splitlines(), 1) if line.strip()[:1] not in ("", "#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = len(ast.literal_eval(node.value)) if path.name == "__init__.py" else 0
    return len(lines), names


def main() -> int:
    """Print what is above its ceiling; return the exit status."""
    above = []
    for package, *ceilings in _ROW.findall((_ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        sizes = [size(path) for path in sorted((_ROOT / package).rglob("*.py"))]
        found = (sum(lines for lines, _ in sizes), len(sizes), sum(names for _, names in sizes))
        for what, is_, most in zip(("code lines", "modules", "public names"), found, ceilings, strict=True):
            if is_ > int(most.replace(",", "")):
                above.append(f"{package}/ has {is_:,} {what}, above its ceiling of {most} in CONTRIBUTING.md")
    print("\n".join(above) or "All packages are within their ceilings.")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
