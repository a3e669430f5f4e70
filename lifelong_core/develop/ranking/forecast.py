"""Expected gains of all sources of a question, with prediction intervals."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from lifelong_core.develop.ranking.question import Question
from lifelong_core.develop.ranking.ranker import ScenarioRanker
from lifelong_core.values.arrays import Floats
from lifelong_core.values.scientific import normal_quantile


@dataclass(frozen=True)
class Forecast:
    """Gains of K sources, shape (K,) each."""

    expected: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, ranker: ScenarioRanker, question: Question, measure: str, confidence: float) -> Self:
        """Predict the gains; where this very transfer was measured, the measurement corrects the prediction.

        Prediction and measurement are weighted by their precision: the mean square of the ranker's residuals on data
        sets that were left out, and the variance between repetitions (see `gain_variances`).
        """
        model = ranker.gains[measure]
        scores, has_record = ranker.score(question.sources, question.target, question.distances)
        expected = model.expected_gains(scores, question.baseline)
        known = question.baseline is not None
        limits = np.array(
            [
                model.residual_limits(confidence, is_measured=bool(flag), baseline_known=known)
                for flag in (False, True)
            ]
        )[has_record.astype(int)]
        low, high = expected + limits[:, 0], expected + limits[:, 1]
        surprise = np.nan_to_num(question.measured_gains - expected)
        # A surprising measurement shows that the residuals understate the error of this prediction.
        residual_variance = model.residual_variance(baseline_known=known)
        spread = np.maximum(residual_variance, surprise**2)
        # Of single measurements the noise is not known, but the residuals contain it.
        noise = np.where(
            np.isnan(question.measured_variances), residual_variance, question.measured_variances
        )
        trust = np.where(
            np.isnan(question.measured_gains) | (spread == 0),
            0.0,
            spread / np.maximum(spread + noise, 1e-300),
        )
        corrected = expected + trust * surprise
        half = float(normal_quantile((1 + confidence) / 2)) * np.sqrt(trust * noise)
        return cls(
            corrected,
            np.where(trust > 0, corrected - half, low),
            np.where(trust > 0, corrected + half, high),
        )
