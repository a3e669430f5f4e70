"""Trials and promotions from rows of their tables."""

from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.rollouts.records import Promotion, Rollout


def rollout_of(row: Row) -> Rollout:
    """A trial from a row of `rollouts`."""
    return read_record(row, Rollout)


def promotion_of(row: Row) -> Promotion:
    """A promotion from a row of `promotions`."""
    return read_record(row, Promotion)
