"""Parts that several experiments share."""
