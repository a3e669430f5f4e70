"""`lifelong knowledge` and `lifelong neighbours`."""
