"""Sends labels of a random part of the predictions, after they were answered, as pathology would."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lifelong.demo.images import CLASS_NAMES
from lifelong.demo.traffic import Answer, Answers
from lifelong.label_import.rows import LabelRow, RejectedRow
from lifelong.label_import.sending import LabelImport, Poster
from lifelong_core.values.errors import LifelongError

LABELLED_SHARE = 0.2
"""Probability of each prediction to get a label."""
SOURCE = "pathology"


def draw_labelled(answers: Answers, rng: np.random.Generator) -> Answers:
    """Draw each prediction with probability `LABELLED_SHARE`."""
    return answers.select(rng.random(len(answers.answers)) < LABELLED_SHARE)


def send_labels(api: Poster, labelled: Answers, on_labels: Callable[[int], None]) -> None:
    """Send the true classes of the predictions that `draw_labelled` drew.

    Args:
        api: connection to the service.
        labelled: predictions with their true classes.
        on_labels: called with the number of labels of each request.

    Raises:
        LifelongError: the service refused a label, or did not know a prediction.
    """
    pairs = zip(labelled.answers, labelled.labels, strict=True)
    rows = (LabelRow(line, _document(answer, label)) for line, (answer, label) in enumerate(pairs, start=1))
    LabelImport(api, _refuse).run(rows, on_labels)


def _document(answer: Answer, label: int) -> dict[str, Any]:
    return {
        "prediction_id": str(answer.prediction_id),
        "label": CLASS_NAMES[label],
        "source": SOURCE,
        "propensity": LABELLED_SHARE,
    }


def _refuse(row: RejectedRow) -> None:
    raise LifelongError(f"the label of prediction {row.prediction_id} was refused: {row.message}")
