"""Which modules Python sources import. Paths on standard input, one a line; JSON as the answer."""

import ast
import json
import sys
from pathlib import Path


def modules(source: str) -> list[str]:
    """The top-level modules that a source names, its own (relative) ones left out; `?` is a computed name."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append(node.module or "?")
        elif isinstance(node, ast.Call) and _called(node.func) in {"import_module", "__import__"}:
            found.append(_text(node.args[0]) if node.args else "?")
    return [name.split(".")[0] for name in found if not name.startswith(".")]


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _text(argument: ast.expr) -> str:
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else "?"


if __name__ == "__main__":
    files = [line for line in sys.stdin.read().split("\n") if line]
    named = {file: modules(Path(file).read_text(encoding="utf-8")) for file in files}
    json.dump({"named": named, "own": sorted(sys.stdlib_module_names)}, sys.stdout)
