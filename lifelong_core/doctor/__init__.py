"""Checks a whole installation, and gives a hint for each problem; it changes nothing. `lifelong doctor` prints it."""
