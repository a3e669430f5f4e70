"""`python -m benchmarks.serving.plain_peer PORT`: a peer of uvicorn, Starlette and our micro-batcher, and nothing else.

No token, no log, no metrics; the same event loop and HTTP parser as ours.
"""

import json
import sys
from collections.abc import Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.serving.classification import Classification
from lifelong_service.prediction.micro_batcher import MicroBatcher


def application() -> Starlette:
    """The application with a running micro-batcher."""
    classification = Classification.from_environment()

    def answers(images: Sequence[bytes]) -> list[bytes]:
        documents = classification.documents([classification.pixels(image) for image in images])
        return [json.dumps(document).encode() for document in documents]

    batcher: MicroBatcher[bytes, bytes] = MicroBatcher(answers, capacity=512, maximum_samples=64)
    batcher.start()

    async def classify(request: Request) -> Response:
        return Response(await batcher.submit(await request.body()), media_type="application/json")

    async def ready(_: Request) -> Response:
        return Response(b"ready")

    return Starlette(routes=[Route("/classify", classify, methods=["POST"]), Route("/readyz", ready)])


if __name__ == "__main__":
    uvicorn.run(
        application(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
