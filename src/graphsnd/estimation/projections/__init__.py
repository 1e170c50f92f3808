"""All pairs by sorting along directions."""
