"""A peer: BentoML's typed image API, with its default settings but for one worker and no access log."""

from typing import Any

import bentoml
from PIL import Image

from benchmarks.serving.classification import Classification


@bentoml.service(name="typed_peer", workers=1, logging={"access": {"enabled": False}})
class TypedPeer:
    """One image in, one decision out; no token, no log."""

    def __init__(self) -> None:
        self._classification = Classification.from_environment()

    @bentoml.api
    def classify(self, image: Image.Image) -> dict[str, Any]:
        """Decision and probabilities of an image, sent as a part of a form."""
        return self._classification.documents([self._classification.input(image)])[0]
