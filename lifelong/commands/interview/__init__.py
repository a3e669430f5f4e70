"""`lifelong recommend`: the interview in the terminal."""
