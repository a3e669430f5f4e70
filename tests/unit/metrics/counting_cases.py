"""Confusion matrices and all counting metrics, for their common properties."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lifelong_core.metrics.counting.cost import net_benefit, quadratic_costs
from lifelong_core.metrics.counting.multiclass import (
    accuracies,
    accuracy,
    balanced_accuracies,
    balanced_accuracy,
    cohen_kappa,
    cohen_kappas,
    error_rate,
    error_rates,
    expected_cost,
    expected_costs,
    matthews_correlation,
    matthews_correlations,
    normalised_expected_cost,
    normalised_expected_costs,
    weighted_cohen_kappa,
    weighted_cohen_kappas,
)
from lifelong_core.metrics.counting.one_versus_rest import (
    f_beta,
    fall_out,
    false_discovery_rate,
    false_omission_rate,
    jaccard,
    markedness,
    miss_rate,
    negative_likelihood_ratio,
    negative_predictive_value,
    positive_likelihood_ratio,
    precision,
    sensitivity,
    specificity,
    youden_index,
)


@st.composite
def confusions(draw, classes=None, *, abstaining=None):
    """Of few samples, many classes of which are absent or never decided."""
    rows = draw(st.integers(2, 4)) if classes is None else classes
    columns = rows + (draw(st.booleans()) if abstaining is None else abstaining)
    return draw(hnp.arrays(np.int64, (rows, columns), elements=st.integers(0, 9)))


def quadratic(confusion):
    classes, decisions = np.shape(confusion)[-2:]
    return np.pad(quadratic_costs(classes), ((0, 0), (0, decisions - classes)), constant_values=1.0)


PER_CLASS = {
    "TPR": (sensitivity, 0, 1),
    "FNR": (miss_rate, 0, 1),
    "TNR": (specificity, 0, 1),
    "FPR": (fall_out, 0, 1),
    "PPV": (precision, 0, 1),
    "FDR": (false_discovery_rate, 0, 1),
    "NPV": (negative_predictive_value, 0, 1),
    "FOR": (false_omission_rate, 0, 1),
    "LR+": (positive_likelihood_ratio, 0, np.inf),
    "LR-": (negative_likelihood_ratio, 0, np.inf),
    "J": (youden_index, -1, 1),
    "MK": (markedness, -1, 1),
    "F1": (f_beta, 0, 1),
    "F2": (lambda confusion: f_beta(confusion, beta=2), 0, 1),
    "JAC": (jaccard, 0, 1),
    "NB": (lambda confusion: net_benefit(confusion, threshold=0.2), -0.25, 1),
}
"""function, and range"""

OF_ALL_CLASSES = {
    "AC": (accuracy, accuracies, 0, 1),
    "ER": (error_rate, error_rates, 0, 1),
    "BA": (balanced_accuracy, balanced_accuracies, 0, 1),
    "CK": (cohen_kappa, cohen_kappas, -1, 1),
    "WCK": (
        lambda confusion: weighted_cohen_kappa(confusion, quadratic(confusion)),
        lambda stack: weighted_cohen_kappas(stack, quadratic(stack)),
        -np.inf,
        1,
    ),
    "MCC": (matthews_correlation, matthews_correlations, -1, 1),
    "EC": (
        lambda confusion: expected_cost(confusion, quadratic(confusion)),
        lambda stack: expected_costs(stack, quadratic(stack)),
        0,
        9,
    ),
    "NEC": (normalised_expected_cost, normalised_expected_costs, 0, np.inf),
}
"""function, that of an array of matrices, and range"""

FUNCTIONS = {name: row[0] for name, row in (PER_CLASS | OF_ALL_CLASSES).items()}
STACKED = {name: row[0] for name, row in PER_CLASS.items()} | {
    name: row[1] for name, row in OF_ALL_CLASSES.items()
}
RANGES = {name: row[-2:] for name, row in (PER_CLASS | OF_ALL_CLASSES).items()}
EVERY = sorted(FUNCTIONS)
