"""Metrics: pure functions of confusion matrices and probabilities.

METRICS describes every metric, `compute_metrics` computes any of them in one call, and each metric is also a function.

- `declaration`, `catalogue`: the decorator that declares a metric beside its function; all metrics by acronym
- `counting`, `scores`, `calibration`: metrics of decisions, of probabilities, and of their calibration
- `computation`: `compute_metrics`; `inputs`, `evaluation`, `invalid_outputs` and `undefined_reasons` are its parts
- `resampling`: bootstrap, intervals and subgroups
- `custom_metric`: metrics of users
"""

from lifelong_core.metrics.calibration.binned import (
    canonical_calibration_error as canonical_calibration_error,
)
from lifelong_core.metrics.calibration.binned import (
    class_wise_calibration_error as class_wise_calibration_error,
)
from lifelong_core.metrics.calibration.binned import expected_calibration_error as expected_calibration_error
from lifelong_core.metrics.calibration.binned import marginal_calibration_error as marginal_calibration_error
from lifelong_core.metrics.calibration.binned import reliability_diagram as reliability_diagram
from lifelong_core.metrics.calibration.binned import (
    top_label_calibration_error as top_label_calibration_error,
)
from lifelong_core.metrics.calibration.cost_loss import ec_calibration_loss as ec_calibration_loss
from lifelong_core.metrics.calibration.density import ece_kde as ece_kde
from lifelong_core.metrics.calibration.kernel import kernel_calibration_error as kernel_calibration_error
from lifelong_core.metrics.calibration.kernel import median_pairwise_distance as median_pairwise_distance
from lifelong_core.metrics.calibration.reference import calibrated_reference as calibrated_reference
from lifelong_core.metrics.calibration.slope import calibration_slope as calibration_slope
from lifelong_core.metrics.calibration.slope import observed_expected_ratio as observed_expected_ratio
from lifelong_core.metrics.catalogue import METRICS as METRICS
from lifelong_core.metrics.catalogue import counting_metric as counting_metric
from lifelong_core.metrics.computation import compute_metrics as compute_metrics
from lifelong_core.metrics.counting.confusion import confusion_matrix as confusion_matrix
from lifelong_core.metrics.counting.confusion import one_versus_rest as one_versus_rest
from lifelong_core.metrics.counting.cost import decision_curve as decision_curve
from lifelong_core.metrics.counting.cost import linear_costs as linear_costs
from lifelong_core.metrics.counting.cost import naive_decision as naive_decision
from lifelong_core.metrics.counting.cost import net_benefit as net_benefit
from lifelong_core.metrics.counting.cost import (
    net_benefit_from_probabilities as net_benefit_from_probabilities,
)
from lifelong_core.metrics.counting.cost import quadratic_costs as quadratic_costs
from lifelong_core.metrics.counting.cost import zero_one_costs as zero_one_costs
from lifelong_core.metrics.counting.multiclass import accuracy as accuracy
from lifelong_core.metrics.counting.multiclass import balanced_accuracy as balanced_accuracy
from lifelong_core.metrics.counting.multiclass import cohen_kappa as cohen_kappa
from lifelong_core.metrics.counting.multiclass import error_rate as error_rate
from lifelong_core.metrics.counting.multiclass import expected_cost as expected_cost
from lifelong_core.metrics.counting.multiclass import matthews_correlation as matthews_correlation
from lifelong_core.metrics.counting.multiclass import normalised_expected_cost as normalised_expected_cost
from lifelong_core.metrics.counting.multiclass import weighted_cohen_kappa as weighted_cohen_kappa
from lifelong_core.metrics.counting.one_versus_rest import f_beta as f_beta
from lifelong_core.metrics.counting.one_versus_rest import fall_out as fall_out
from lifelong_core.metrics.counting.one_versus_rest import false_discovery_rate as false_discovery_rate
from lifelong_core.metrics.counting.one_versus_rest import false_omission_rate as false_omission_rate
from lifelong_core.metrics.counting.one_versus_rest import jaccard as jaccard
from lifelong_core.metrics.counting.one_versus_rest import markedness as markedness
from lifelong_core.metrics.counting.one_versus_rest import miss_rate as miss_rate
from lifelong_core.metrics.counting.one_versus_rest import (
    negative_likelihood_ratio as negative_likelihood_ratio,
)
from lifelong_core.metrics.counting.one_versus_rest import (
    negative_predictive_value as negative_predictive_value,
)
from lifelong_core.metrics.counting.one_versus_rest import (
    positive_likelihood_ratio as positive_likelihood_ratio,
)
from lifelong_core.metrics.counting.one_versus_rest import precision as precision
from lifelong_core.metrics.counting.one_versus_rest import sensitivity as sensitivity
from lifelong_core.metrics.counting.one_versus_rest import specificity as specificity
from lifelong_core.metrics.counting.one_versus_rest import youden_index as youden_index
from lifelong_core.metrics.counting.stability import adjusted_jaccard as adjusted_jaccard
from lifelong_core.metrics.counting.stability import adjusted_positive_jaccard as adjusted_positive_jaccard
from lifelong_core.metrics.counting.stability import adjusted_positive_overlap as adjusted_positive_overlap
from lifelong_core.metrics.counting.stability import (
    heuristically_adjusted_positive_jaccard as heuristically_adjusted_positive_jaccard,
)
from lifelong_core.metrics.counting.stability import kendall_correlation as kendall_correlation
from lifelong_core.metrics.counting.stability import negative_agreement_ratio as negative_agreement_ratio
from lifelong_core.metrics.counting.stability import pearson_correlation as pearson_correlation
from lifelong_core.metrics.counting.stability import positive_agreement_ratio as positive_agreement_ratio
from lifelong_core.metrics.counting.stability import positive_jaccard as positive_jaccard
from lifelong_core.metrics.counting.stability import positive_overlap as positive_overlap
from lifelong_core.metrics.counting.stability import spearman_correlation as spearman_correlation
from lifelong_core.metrics.counting.stability import total_agreement_ratio as total_agreement_ratio
from lifelong_core.metrics.counting.uncertainty_aware import (
    uncertainty_aware_accuracy as uncertainty_aware_accuracy,
)
from lifelong_core.metrics.counting.uncertainty_aware import (
    uncertainty_aware_confusion as uncertainty_aware_confusion,
)
from lifelong_core.metrics.counting.uncertainty_aware import uncertainty_aware_f1 as uncertainty_aware_f1
from lifelong_core.metrics.counting.uncertainty_aware import (
    uncertainty_aware_false_positive_rate as uncertainty_aware_false_positive_rate,
)
from lifelong_core.metrics.counting.uncertainty_aware import (
    uncertainty_aware_precision as uncertainty_aware_precision,
)
from lifelong_core.metrics.counting.uncertainty_aware import (
    uncertainty_aware_recall as uncertainty_aware_recall,
)
from lifelong_core.metrics.custom_metric import CustomMetric as CustomMetric
from lifelong_core.metrics.resampling.bootstrap import bootstrap as bootstrap
from lifelong_core.metrics.resampling.bootstrap import bootstrap_confusions as bootstrap_confusions
from lifelong_core.metrics.resampling.intervals import Bootstrap as Bootstrap
from lifelong_core.metrics.scores.at_target import best_threshold as best_threshold
from lifelong_core.metrics.scores.at_target import choose_threshold as choose_threshold
from lifelong_core.metrics.scores.at_target import metric_at_target as metric_at_target
from lifelong_core.metrics.scores.at_target import value_at_threshold as value_at_threshold
from lifelong_core.metrics.scores.ranking import auroc as auroc
from lifelong_core.metrics.scores.ranking import average_precision as average_precision
from lifelong_core.metrics.scores.ranking import precision_recall_curve as precision_recall_curve
from lifelong_core.metrics.scores.ranking import roc_curve as roc_curve
from lifelong_core.metrics.scores.samples import corrected_probabilities as corrected_probabilities
from lifelong_core.metrics.scores.scoring_rules import brier_decomposition as brier_decomposition
from lifelong_core.metrics.scores.scoring_rules import brier_score as brier_score
from lifelong_core.metrics.scores.scoring_rules import brier_skill_score as brier_skill_score
from lifelong_core.metrics.scores.scoring_rules import negative_log_likelihood as negative_log_likelihood
from lifelong_core.metrics.scores.scoring_rules import root_brier_score as root_brier_score
