"""What several experiments need."""
