"""NannyML's CBPE on the windows of `performance_estimation`, from an environment of its own.

    PYTHON -m benchmarks.nannyml_peer INPUT.npz OUTPUT.npz      (PYTHON has nannyml and statsmodels)

NannyML pins other versions than this project, so that both do not fit into one environment. INPUT holds `labels`,
`probabilities` (softmax of the calibration logits), `decisions` of the head on them, and for each window k
`window_probabilities_k` and `window_decisions_k`; `costs` (K, C, C) are the cost matrices. OUTPUT holds `accuracy`,
(windows,), of CBPE, and `expected_cost`, (windows, K), from the probabilities that CBPE's own calibrators give.
"""

import sys
from typing import Any

import numpy as np


def main() -> None:
    """Estimate every window of the input file."""
    import nannyml
    import pandas as pd
    from nannyml.calibration import CalibratorFactory, needs_calibration

    given = dict(np.load(sys.argv[1]))
    labels, probabilities = given["labels"], given["probabilities"]
    classes = probabilities.shape[1]
    windows = sum(name.startswith("window_probabilities_") for name in given)

    def frame(rows: np.ndarray, decisions: np.ndarray) -> Any:
        named = {f"p{k}": rows[:, k] for k in range(classes)}
        return pd.DataFrame({**named, "decision": decisions})

    reference = frame(probabilities, given["decisions"])
    reference["label"] = labels
    binary = classes == 2
    estimator = nannyml.CBPE(
        y_pred_proba="p1" if binary else {k: f"p{k}" for k in range(classes)},
        y_pred="decision",
        y_true="label",
        metrics=["accuracy"],
        problem_type="classification_binary" if binary else "classification_multiclass",
        chunk_number=1,
    )
    # Only the estimates of new windows are wanted; the reference must be one chunk, too.
    estimator.fit(reference)
    calibrators: list[Any] = []
    for k in range(classes):
        one = CalibratorFactory.create("isotonic")
        is_class = (labels == k).astype(int)
        wanted = needs_calibration(is_class, probabilities[:, k], one)
        calibrators.append(one if wanted else None)
        if wanted:
            one.fit(probabilities[:, k], is_class)
    accuracy, costs = np.empty(windows), np.empty((windows, len(given["costs"])))
    for number in range(windows):
        rows, decisions = given[f"window_probabilities_{number}"], given[f"window_decisions_{number}"]
        found = estimator.estimate(frame(rows, decisions)).filter(period="analysis").to_df()
        accuracy[number] = float(found["accuracy"]["value"].iloc[0])
        calibrated = np.column_stack(
            [rows[:, k] if one is None else one.calibrate(rows[:, k]) for k, one in enumerate(calibrators)]
        )
        calibrated /= np.maximum(calibrated.sum(axis=1, keepdims=True), 1e-12)
        for index, matrix in enumerate(given["costs"]):
            costs[number, index] = (calibrated * matrix[:, decisions].T).sum(axis=1).mean()
    np.savez(sys.argv[2], accuracy=accuracy, expected_cost=costs, version=np.asarray(nannyml.__version__))


if __name__ == "__main__":
    main()
