"""Command line and demo: start the processes, import neither service nor monitor."""

__version__ = "0.1.0"
