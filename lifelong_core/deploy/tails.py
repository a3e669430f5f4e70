# pyright: basic
"""Tail probabilities of the distributions that quadratic forms follow; scipy is imported where it is used."""


def f_tail(numerator: float, denominator: float, value: float) -> float:
    """Probability that an F-distributed number exceeds the value."""
    from scipy import special

    return float(special.fdtrc(numerator, denominator, max(value, 0.0)))


def normal_quantile(tail: float) -> float:
    """The number that a standard normal one exceeds with this probability."""
    from scipy import special

    return float(-special.ndtri(tail))


def t_tail(degrees_of_freedom: float, value: float) -> float:
    """Probability that a t-distributed number exceeds the value."""
    from scipy import special

    return float(special.stdtr(degrees_of_freedom, -value))
