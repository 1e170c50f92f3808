"""Pages that autosummary does not write: commands, log columns and the names of the package, read from the code."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import typer
from sphinx.domains.python import PyObject
from sphinx.ext import napoleon
from sphinx.ext.napoleon import GoogleDocstring

import graphsnd
from graphsnd.cli.app import app
from graphsnd.rl import log

FOLDER = Path(__file__).parents[1] / "reference"


def plain(text: str) -> str:
    """Return help or a docstring as Markdown: Sphinx's roles become code."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?([^`<>]+)`", r"`\1`", text)
    text = re.sub(r":\w+:`([^`<]+) <[^`]*>`", r"\1", text)
    return text.replace("``", "`")


def commands_page() -> list[str]:
    """Return the page of all commands, from the application itself."""
    lines = ["# Commands", "", "`graphsnd --help` and `graphsnd COMMAND --help` show the same in a terminal.", ""]
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        context = typer.Context(command, info_name=f"graphsnd {name}")
        usage = " ".join(command.collect_usage_pieces(context))
        lines += [f"## graphsnd {name}", "", "```text", f"graphsnd {name} {usage}", "```", ""]
        for paragraph in plain(command.help).replace("\b\n", "").split("\n\n"):
            lines += ["```text", paragraph, "```", ""] if "\n " in paragraph else [paragraph, ""]
        for option in command.params:
            lines += ["", *describe_option(option, context)]
        lines.append("")
    return lines


def describe_option(option: Any, context: Any) -> list[str]:
    """Return the entry of one option or argument as its help says it: how it is written, its meaning, its default."""
    written, meaning = option.get_help_record(context)
    return [f"`{written}`", f": {plain(meaning)}"]


def fields(kind: type) -> list[tuple[str, str, str]]:
    """Return name, type and comment of each field of a dataclass, as its source gives them."""
    pattern = r"^    (\w+): ([^=#\n]+?)(?: = [^#\n]+?)?(?:  # (.*(?:\n    # .*)*))?$"
    body = inspect.getsource(kind).partition("\n    def ")[0]
    return [(name, of, note.replace("\n    #", "")) for name, of, note in re.findall(pattern, body, re.MULTILINE)]


def add_fields(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Add the fields of a dataclass and what their comments say, where its docstring does not describe them."""
    if what == "module":  # "5 ONE NUMBER: ..." says where a stage stands in the package
        lines[0] = re.sub(r"^\d+ ([A-Z ]+)\b", lambda match: match[1].capitalize(), lines[0])
    if what == "class" and dataclasses.is_dataclass(value) and "Args:" not in lines and "Attributes:" not in lines:
        notes = [(name, re.sub(r"([|*`\\]|_\b)", r"\\\1", note)) for name, _, note in fields(value) if note]
        at = lines.index("Example:") if "Example:" in lines else len(lines)
        lines[at:at] = ["", "Attributes:", *(f"    {name}: {note[:1].upper()}{note[1:]}" for name, note in notes), ""]


def columns_page() -> list[str]:
    """Return the page of the log's columns, from the dataclasses of its rows and their comments."""
    text = "`metrics.csv` has a row for each iteration and run. A cell is empty where nothing was measured."
    lines = ["# Log columns", "", text, ""]
    lines += ["| column | type | meaning |", "| --- | --- | --- |"]
    for name, type_, meaning in fields(log.Row):
        lines.append(f"| `{name}` | {type_.replace('|', 'or')} | {meaning} |")
    return lines


def names_table() -> list[str]:
    """Return a table of the names of the package itself, with the first sentence of each."""
    lines = ["| name | what it is |", "| --- | --- |"]
    for name in graphsnd.__all__:
        value = getattr(graphsnd, name)
        first = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
        link = f"{{py:{'mod' if inspect.ismodule(value) else 'obj'}}}`graphsnd.{name}`"
        lines.append(f"| {link} | {plain(first).replace('|', chr(92) + '|')} |")
    return lines


def write(app: Any) -> None:
    """Write the pages that changed."""
    pages = {"commands.md": commands_page(), "columns.md": columns_page(), "names.md": names_table()}
    FOLDER.mkdir(exist_ok=True)
    for name, lines in pages.items():
        path, text = FOLDER / name, "\n".join(lines) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class Docstring(GoogleDocstring):
    """Docstrings of a code base whose types are annotations: words before a colon are no type."""

    def _consume_returns_section(self, preprocess_types: bool = False) -> list[tuple[str, str, list[str]]]:
        return [("", "", self._dedent(self._consume_to_next_section()))]

    def _consume_inline_attribute(self) -> tuple[str, list[str]]:
        return "", self._dedent(self._consume_to_end())


def setup(app: Any) -> dict[str, bool]:
    """Write them before pages are read."""
    napoleon.GoogleDocstring = Docstring
    for field in PyObject.doc_field_types:
        field.label = "Attributes" if field.name == "variable" else field.label
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", add_fields, priority=400)  # before napoleon reads the sections
    return {"parallel_read_safe": True, "parallel_write_safe": True}
