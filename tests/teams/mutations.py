"""Damage to files, as a strategy of Hypothesis: cuts, and changed, swapped, lost and added bytes."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = [b"0", b"-1", b"1e999", b"NaN", b"null", b"[]", b"{}", b'""', b"true", b"9" * 20, b"x", b"\x1b[31m"]


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """Draw a file that was cut, or damaged at up to three places."""
    places = st.integers(0, len(good) - 1)
    if draw(st.booleans()):
        return good[: draw(places)]
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 3))):
        start, size = draw(places), draw(st.integers(1, 16))
        kind = draw(st.sampled_from(("flip", "delete", "insert", "swap", "word")))
        if kind == "flip" and start < len(data):
            data[start] ^= 1 << size % 8
        elif kind == "delete":
            del data[start : start + size]
        elif kind == "insert":
            data[start:start] = draw(st.binary(min_size=1, max_size=16))
        elif kind == "swap":
            other = draw(places)
            first, second = data[start : start + size], data[other : other + size]
            data[start : start + size], data[other : other + size] = second, first
        else:
            data[start : start + size] = draw(st.sampled_from(WORDS))
    return bytes(data)
