"""Kinds of predicted uncertainties, apart from the rest: the command line would start slower with numpy."""

from typing import Final, Literal, TypeAlias, get_args

UncertaintyKind: TypeAlias = Literal["standard_deviation", "variance", "entropy", "other"]
"""Kind of an uncertainty of the probability of the positive class. Entropies are in nats; `other` is any number that is
not negative."""
UNCERTAINTY_KINDS: Final[tuple[UncertaintyKind, ...]] = get_args(UncertaintyKind)
