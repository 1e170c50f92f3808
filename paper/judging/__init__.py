"""Claims, rules, verdicts, and how they are shown."""
