"""`lifelong validate`, `lifelong estimate-dice` and `lifelong stability`."""
