"""How good a ranking of source tasks was (thesis, section 5.1.2).

- `meta_metrics`: gain, improvement, percentile, regret, multi-shot and weightedtau of one ranking.
- `method_rankings`: win rate, setup stability and bootstrapped rankings of several methods.

Three rules hold for all meta metrics:

- A source whose outcome is nan (not a legal pair, or not measured) is left out. `percentile`, `regret` and
  `weightedtau` are nan with fewer than two sources, because there is no choice then.
- Scores are higher for better suggestions; negate distances. A source without a score (nan) ranks behind all others.
- Equal scores and equal outcomes have no order: every result is the exact expectation over all orders of the equal
  ones. The published definitions order equal outcomes by the prediction under test, which favours any prediction.
"""

from lifelong_core.develop.transferability.meta_metrics import (
    gain,
    improvement,
    max_of_top,
    mean_of_top,
    percentile,
    regret,
    weightedtau,
)
from lifelong_core.develop.transferability.method_rankings import (
    bootstrap_weights,
    mean_over_setups,
    mean_then_rank,
    rank_methods,
    rank_then_mean,
    setup_stability,
    win_rate,
)

__all__ = [
    "bootstrap_weights",
    "gain",
    "improvement",
    "max_of_top",
    "mean_of_top",
    "mean_over_setups",
    "mean_then_rank",
    "percentile",
    "rank_methods",
    "rank_then_mean",
    "regret",
    "setup_stability",
    "weightedtau",
    "win_rate",
]
