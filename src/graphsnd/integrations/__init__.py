"""Adapters to other libraries: no mathematics, each imported by name and only by those who have the library."""
