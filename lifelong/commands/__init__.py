"""One module per command. Heavy imports stand inside the functions: `lifelong --help` must answer at once."""
