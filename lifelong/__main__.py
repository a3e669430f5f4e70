"""`python -m lifelong`."""

from lifelong.cli import main

main()
