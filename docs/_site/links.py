"""Links that leave a page: to files of the repository, and to names, which are found as Python finds them."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]


def point_to_repository(app: Any, page: str, content: list[str]) -> None:
    """Rewrite links to files outside of docs/, which is where they lie for readers of the repository."""

    def rewrite(match: re.Match[str]) -> str:
        text, path = match[1], match[2].removeprefix("../") if match[2].startswith("../") else f"docs/{match[2]}"
        if not (ROOT / path).exists():
            logger.warning("%s links to %s, which does not exist", page, path)
        return f'<a href="../{path}">{text}</a>'  # from site/, where the pages are built

    content[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(((?:\.\.|runs)/[^)#\s]+)\)", rewrite, content[0])


def find(path: str) -> Any:
    """Return what a dotted path names, or None."""
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:size]))
            for part in parts[size:]:
                fields = getattr(value, "__annotations__", {})
                value = fields[part] if part in fields else getattr(value, part)
        except (ImportError, AttributeError):
            continue
        return value
    return None


def link_names(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Link a name to the entry of the same object under another path; what is not public is shown as code."""
    if node.get("refdomain") != "py":
        return None
    target, module, around = node["reftarget"], node.get("py:module"), node.get("py:class")
    home = re.search(r"docstring of ([\w.]+)$", str(node.source or node.parent.source))
    places = [f"{module}.{around}", module, home and home[1].rpartition(".")[0], "graphsnd"]
    for path in (*(f"{place}.{target}" for place in places if place), target):
        if (value := find(path)) is None:
            continue
        own = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
        canonical = value.__name__ if inspect.ismodule(value) else own
        domain = env.get_domain("py")
        for name, entry in domain.objects.items():
            if name in (path, canonical):
                uri = app.builder.get_relative_uri(node.get("refdoc"), entry.docname) + "#" + entry.node_id
                return nodes.reference("", "", content, internal=True, refuri=uri)
        return content
    return None


def setup(app: Any) -> dict[str, bool]:
    """Connect the two."""
    app.connect("source-read", point_to_repository)
    app.connect("missing-reference", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
