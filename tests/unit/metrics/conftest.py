"""Collection of the tests of metrics."""

# Without its data the module raises a skip. Collected for doctests, it would then stay in sys.modules, empty.
collect_ignore = ["reference.py"]
