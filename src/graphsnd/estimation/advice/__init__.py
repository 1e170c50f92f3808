"""Which design, before anything is measured."""
