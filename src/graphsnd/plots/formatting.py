"""Numbers as text: the same digits and units in the terminal, on pages and in figures."""

from __future__ import annotations

import html
from collections.abc import Sequence

from graphsnd.errors import printable


def escape(text: str) -> str:
    """Return text for HTML, without control characters."""
    return html.escape(printable(text), quote=False)


def format_interval(ends: tuple[float, float]) -> str:
    """Return an interval with four significant digits at both ends.

    Example:
        >>> format_interval((0.91851, 1.14))
        '[0.9185, 1.140]'
    """
    return f"[{ends[0]:#.4g}, {ends[1]:#.4g}]"


def format_count(value: float) -> str:
    """Return a count in full while it is short.

    Example:
        >>> format_count(20_480), format_count(20_275_200), format_count(6.42e11)
        ('20,480', '2.0e7', '6.4e11')
    """
    return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def format_duration(seconds: float) -> str:
    """Return three digits and a unit.

    Example:
        >>> [format_duration(s) for s in (0.00000512, 0.0213, 3.0, 22200.0)]
        ['5.12 us', '21.3 ms', '3.00 s', '22,200 s']
    """
    value, unit = next(((seconds * f, u) for f, u in ((1e6, "us"), (1e3, "ms")) if seconds * f < 999.5), (seconds, "s"))
    return f"{value:,.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"


def format_agents(count: int, names: Sequence[str] | None, most: int = 12) -> str:
    """Return the number of agents, and their names where they have any; the first ones where there are many.

    Example:
        >>> format_agents(3, ["scout", "guard", "medic"], most=2), format_agents(1000, None)
        ('3: scout, guard and 1 more', '1,000')
    """
    if not names:
        return f"{count:,}"
    return f"{count:,}: {', '.join(names[:most])}" + f" and {count - most:,} more" * (count > most)
