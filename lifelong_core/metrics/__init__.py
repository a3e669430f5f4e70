"""Metrics: pure functions of confusion matrices and probabilities.

METRICS describes every metric, `compute_metrics` computes any of them in one call, and each metric is also a
function.
"""

from lifelong_core.metrics.calibration.binned import (
    Reliability,
    canonical_calibration_error,
    class_wise_calibration_error,
    expected_calibration_error,
    marginal_calibration_error,
    reliability_diagram,
    top_label_calibration_error,
)
from lifelong_core.metrics.calibration.cost_loss import ec_calibration_loss
from lifelong_core.metrics.calibration.density import ece_kde, leave_one_out_bandwidth
from lifelong_core.metrics.calibration.kernel import (
    Estimate,
    kernel_calibration_error,
    median_pairwise_distance,
)
from lifelong_core.metrics.calibration.reference import CalibratedReference, calibrated_reference
from lifelong_core.metrics.calibration.slope import calibration_slope, observed_expected_ratio
from lifelong_core.metrics.catalogue.metric_info import MetricInfo, Relation
from lifelong_core.metrics.catalogue.metrics import METRICS
from lifelong_core.metrics.computation.compute_metrics import MetricResults, compute_metrics
from lifelong_core.metrics.counting.confusion import OneVersusRest, confusion_matrix, one_versus_rest
from lifelong_core.metrics.counting.cost import (
    expected_cost,
    linear_costs,
    naive_decision,
    normalised_expected_cost,
    quadratic_costs,
    zero_one_costs,
)
from lifelong_core.metrics.counting.multiclass import (
    accuracy,
    balanced_accuracy,
    cohen_kappa,
    error_rate,
    matthews_correlation,
    weighted_cohen_kappa,
)
from lifelong_core.metrics.counting.net_benefit import (
    DecisionCurve,
    decision_curve,
    net_benefit,
    net_benefit_from_probabilities,
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
from lifelong_core.metrics.counting.stability import (
    adjusted_jaccard,
    adjusted_positive_jaccard,
    adjusted_positive_overlap,
    agreement,
    heuristically_adjusted_positive_jaccard,
    kendall_correlation,
    negative_agreement_ratio,
    pearson_correlation,
    positive_agreement_ratio,
    positive_jaccard,
    positive_overlap,
    spearman_correlation,
    total_agreement_ratio,
)
from lifelong_core.metrics.counting.uncertainty_aware import (
    uncertainty_aware_accuracy,
    uncertainty_aware_confusion,
    uncertainty_aware_f1,
    uncertainty_aware_false_positive_rate,
    uncertainty_aware_precision,
    uncertainty_aware_recall,
)
from lifelong_core.metrics.custom_metric import CustomMetric
from lifelong_core.metrics.resampling.aggregation import (
    HierarchicalMean,
    Subgroup,
    hierarchical_mean,
    subgroup_values,
)
from lifelong_core.metrics.resampling.bootstrap import ConfusionBootstrap, bootstrap, bootstrap_confusions
from lifelong_core.metrics.resampling.counting_metrics import counting_metric
from lifelong_core.metrics.resampling.intervals import Bootstrap, Interval
from lifelong_core.metrics.scores.at_target import (
    best_threshold,
    choose_threshold,
    metric_at_target,
    value_at_threshold,
)
from lifelong_core.metrics.scores.prior_correction import corrected_probabilities
from lifelong_core.metrics.scores.ranking import (
    PrecisionRecallCurve,
    RocCurve,
    auroc,
    average_precision,
    precision_recall_curve,
    roc_curve,
)
from lifelong_core.metrics.scores.scoring_rules import (
    BrierDecomposition,
    brier_decomposition,
    brier_score,
    brier_skill_score,
    negative_log_likelihood,
    root_brier_score,
)

__all__ = [
    "METRICS",
    "Bootstrap",
    "BrierDecomposition",
    "CalibratedReference",
    "ConfusionBootstrap",
    "CustomMetric",
    "DecisionCurve",
    "Estimate",
    "HierarchicalMean",
    "Interval",
    "MetricInfo",
    "MetricResults",
    "OneVersusRest",
    "PrecisionRecallCurve",
    "Relation",
    "Reliability",
    "RocCurve",
    "Subgroup",
    "accuracy",
    "adjusted_jaccard",
    "adjusted_positive_jaccard",
    "adjusted_positive_overlap",
    "agreement",
    "auroc",
    "average_precision",
    "balanced_accuracy",
    "best_threshold",
    "bootstrap",
    "bootstrap_confusions",
    "brier_decomposition",
    "brier_score",
    "brier_skill_score",
    "calibrated_reference",
    "calibration_slope",
    "canonical_calibration_error",
    "choose_threshold",
    "class_wise_calibration_error",
    "cohen_kappa",
    "compute_metrics",
    "confusion_matrix",
    "corrected_probabilities",
    "counting_metric",
    "decision_curve",
    "ec_calibration_loss",
    "ece_kde",
    "error_rate",
    "expected_calibration_error",
    "expected_cost",
    "f_beta",
    "fall_out",
    "false_discovery_rate",
    "false_omission_rate",
    "heuristically_adjusted_positive_jaccard",
    "hierarchical_mean",
    "jaccard",
    "kendall_correlation",
    "kernel_calibration_error",
    "leave_one_out_bandwidth",
    "linear_costs",
    "marginal_calibration_error",
    "markedness",
    "matthews_correlation",
    "median_pairwise_distance",
    "metric_at_target",
    "miss_rate",
    "naive_decision",
    "negative_agreement_ratio",
    "negative_likelihood_ratio",
    "negative_log_likelihood",
    "negative_predictive_value",
    "net_benefit",
    "net_benefit_from_probabilities",
    "normalised_expected_cost",
    "observed_expected_ratio",
    "one_versus_rest",
    "pearson_correlation",
    "positive_agreement_ratio",
    "positive_jaccard",
    "positive_likelihood_ratio",
    "positive_overlap",
    "precision",
    "precision_recall_curve",
    "quadratic_costs",
    "reliability_diagram",
    "roc_curve",
    "root_brier_score",
    "sensitivity",
    "spearman_correlation",
    "specificity",
    "subgroup_values",
    "top_label_calibration_error",
    "total_agreement_ratio",
    "uncertainty_aware_accuracy",
    "uncertainty_aware_confusion",
    "uncertainty_aware_f1",
    "uncertainty_aware_false_positive_rate",
    "uncertainty_aware_precision",
    "uncertainty_aware_recall",
    "value_at_threshold",
    "weighted_cohen_kappa",
    "youden_index",
    "zero_one_costs",
]
