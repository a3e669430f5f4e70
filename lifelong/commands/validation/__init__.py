"""`lifelong validate`."""
