"""Formulas as MathML, which browsers draw themselves: no script, no font, no request."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def draw(display: str) -> Any:
    """Return the visitor that writes a formula inline or as a block."""

    def visit(writer: Any, node: Any) -> None:
        # The converter raises only the last parenthesis of a binomial coefficient; braces make it one thing.
        text = re.sub(r"(\\t?binom\{[^}]*\}\{[^}]*\})\^", r"{\1}^", node.astext())
        formula = convert(text, display=display)
        writer.body.append(formula if display == "inline" else f'<div class="formula">{formula}</div>\n')
        raise nodes.SkipNode

    return visit


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (draw("inline"), None), (draw("block"), None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
