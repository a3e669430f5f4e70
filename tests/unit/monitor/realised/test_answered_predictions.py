import numpy as np

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.realised.answered_predictions import compute_answers
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, draw

HEADS = {
    1: PostProcessingHead(1.0, [0.0, 0.0, 0.0], COSTS, BALANCED, CLASS_NAMES),
    2: PostProcessingHead(0.5, [1.0, 0.0, 0.0], COSTS, BALANCED, CLASS_NAMES),
    3: PostProcessingHead(1.0, [0.0, 0.0], [[0, 1], [1, 0]], [0.5, 0.5], ("no", "yes")),
}


def head_of(version: int) -> PostProcessingHead:
    if version == 4:
        raise DamagedHeadError("head 4 is damaged.")
    if version not in HEADS:
        raise NotFoundError(f"there is no head {version}.")
    return HEADS[version]


def test_each_prediction_gets_the_probabilities_of_the_head_that_answered_it() -> None:
    logits = draw(BALANCED, 6, seed=1).logits
    versions = np.array([2, 1, 1, 2, 2, 1])
    found = compute_answers(logits, versions, head_of, classes=3)
    alone = [
        HEADS[version].apply(row[np.newaxis]).probabilities[0]
        for row, version in zip(logits, versions.tolist(), strict=True)
    ]
    assert found.probabilities.tolist() == np.array(alone).tolist()
    assert found.is_known.all()
    assert found.unscored == ()


def test_what_cannot_be_computed_again_is_counted_by_reason() -> None:
    logits = draw(BALANCED, 12, seed=1).logits.copy()
    logits[0, 1], logits[5, 0] = np.nan, np.inf
    found = compute_answers(logits, np.array([1, 1, 3, 4, 4, 4, 5, 5, 5, 2, 2, 2]), head_of, classes=3)
    assert np.flatnonzero(found.is_known).tolist() == [1, 9, 10, 11]
    assert found.probabilities.tolist() == [
        *HEADS[1].apply(logits[1:2]).probabilities.tolist(),
        *HEADS[2].apply(logits[9:]).probabilities.tolist(),
    ]
    assert {some.reason.partition(": ")[2]: some.samples for some in found.unscored} == {
        "their logits are not finite": 2,
        "head 3 is for 2 classes, not 3": 1,
        "head 4 is damaged.": 2,
        "there is no head 5.": 3,
    }
