"""Docstrings point at things that exist, and promises name tests that exist."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphsnd

SOURCE = Path(graphsnd.__file__).parent
REFERENCE = re.compile(r":(?:func|class|meth|mod|attr|data|exc|obj):`(?:[^`]*<)?~?([^`<>]+)>?`")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def references(tree: ast.AST, classes: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return all cross-references, each with the classes around it."""
    for node in (tree, *ast.iter_child_nodes(tree)) if isinstance(tree, ast.Module) else ast.iter_child_nodes(tree):
        inside = (*classes, node.name) if isinstance(node, ast.ClassDef) else classes
        if isinstance(node, Documented):
            yield from ((target, inside) for target in REFERENCE.findall(ast.get_docstring(node) or ""))
        if node is not tree:
            yield from references(node, inside)


def resolve(path: str) -> Any:
    """Return what a dotted path names: a module, something in it, or a field of a class."""
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            fields = getattr(value, "__annotations__", {})
            value = fields[part] if part in fields else getattr(value, part)
        return value
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_cross_references_resolve(file: Path) -> None:
    found = list(references(ast.parse(file.read_text(encoding="utf-8"))))
    if not found:
        return
    name = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    for target, classes in found:
        # As Sphinx looks it up: in the class, in the module, and from the top.
        for place in (".".join((name, *classes)), name, None):
            try:
                resolve(target if place is None else f"{place}.{target}")
                break
            except (AttributeError, ModuleNotFoundError):
                continue
        else:
            pytest.fail(f"{target!r} in {name}{'.'.join(('', *classes))} points nowhere")


def test_promises_name_tests_that_exist() -> None:
    root = SOURCE.parents[1]
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (root / "docs/reliability.md").read_text(encoding="utf-8"))
    assert named
    for file, test in named:
        assert (root / file).is_file(), file
        assert f"def {test}(" in (root / file).read_text(encoding="utf-8"), f"{file}::{test}"
