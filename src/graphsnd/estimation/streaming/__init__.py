"""Accumulate what never fits in memory, to the bit."""
