"""The HTTP routes, one module for each kind of thing that they are about."""
