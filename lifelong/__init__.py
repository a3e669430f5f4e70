"""Command line and demo: start the processes, import neither service nor monitor."""
