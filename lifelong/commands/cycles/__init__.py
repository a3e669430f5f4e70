"""`lifelong adapt` and `lifelong cycles`."""
