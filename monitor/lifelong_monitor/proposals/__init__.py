"""Proposals of retrainings, after each recorded cycle.

- `proposer`: judges a population, and proposes
- `cycle_looks`: what the recorded cycles show: refusals and estimated performance
- `labelled_looks`: what the labelled predictions show
"""
