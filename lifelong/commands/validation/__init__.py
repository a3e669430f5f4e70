"""`lifelong validate` and `lifelong estimate-dice`."""
