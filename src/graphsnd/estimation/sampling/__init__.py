"""Draw agents and observations, and say how far the mean can be off."""
