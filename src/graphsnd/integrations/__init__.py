"""Adapters to other libraries, without mathematics. Import one by name if you have its library."""
