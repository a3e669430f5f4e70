"""`lifelong doctor`: checks a whole installation, and gives a hint for each problem. It changes nothing."""
