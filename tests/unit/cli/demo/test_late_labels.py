"""Late labels: a random part of the predictions, each with its true class and probability of being drawn."""

from uuid import UUID

import numpy as np
import pytest

from lifelong.demo.images import CLASS_NAMES
from lifelong.demo.traffic import LABELLED_SHARE, Answer, Answers, draw_labelled, send_labels
from lifelong_core.values.errors import LifelongError


class Service:
    """Stores labels; predictions of `unknown` are not in its log."""

    def __init__(self, unknown=()):
        self.labels = []
        self.unknown = unknown

    def post(self, path, document):
        assert path == "/v1/feedback"
        self.labels += document["labels"]
        ids = (one["prediction_id"] for one in document["labels"])
        return {
            "labels": [
                {"prediction_id": known, "outcome": "unknown" if known in self.unknown else "stored"}
                for known in ids
            ]
        }


def answers(count):
    labels = np.arange(count) % len(CLASS_NAMES)
    return Answers(tuple(Answer(UUID(int=i), 1, 0, (1.0, 0.0, 0.0), float(i)) for i in range(count)), labels)


def test_the_same_seed_draws_the_same_fifth():
    drawn = [draw_labelled(answers(2000), np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert drawn[0].answers == drawn[1].answers != drawn[2].answers
    assert len(drawn[0].answers) == pytest.approx(2000 * LABELLED_SHARE, rel=0.2)


def test_each_label_has_its_class_and_the_probability_of_its_draw():
    service, sent = Service(), []
    send_labels(service, answers(700), sent.append)
    assert sum(sent) == 700
    assert [one["prediction_id"] for one in service.labels] == [str(UUID(int=i)) for i in range(700)]
    assert [one["label"] for one in service.labels] == [CLASS_NAMES[i % 3] for i in range(700)]
    assert {one["propensity"] for one in service.labels} == {LABELLED_SHARE}


def test_an_unknown_prediction_is_an_error():
    with pytest.raises(LifelongError, match=f"{UUID(int=3)} was refused"):
        send_labels(Service(unknown={str(UUID(int=3))}), answers(9), lambda _: None)
