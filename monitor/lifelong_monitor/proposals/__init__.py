"""Proposals of retrainings, after each recorded cycle.

- `proposer`: judges a population, and proposes
- `looks`: the evidence: refusals and estimated performance of recorded cycles, and labelled predictions
"""
