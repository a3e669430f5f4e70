"""ONNX files that exhaust memory or time, or show a secret: they are refused without effect on other requests."""

import http.client
import json
import secrets
import time
from collections.abc import Mapping

from tests.attacks.attack import Outcome, Scale
from tests.attacks.graphs import CANARY, CANARY_NUMBERS, CORPUS, HostileGraph
from tests.attacks.target import Target
from tests.integration.processes import Reply

_QUICK = (
    "endless_loop",
    "constant_of_4_gb",
    "size_by_pixels",
    "group_key_above",
    "secret_as_shape",
    "secret_as_output_shape",
)
"""Graphs of the bounded form; the service's own tests upload the whole corpus in process."""
DOCUMENT = {
    "task": "skin",
    "name": "hostile",
    "preprocessing": {"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]},
}


def hostile_graph(target: Target, scale: Scale) -> Outcome:
    """Uploads of hostile ONNX files, one after the other, while other clients send ordinary images."""
    outcome = Outcome()
    (target.installation.settings.data_directory / "w").write_bytes(CANARY)
    names = _QUICK if scale.seconds < 10 else tuple(CORPUS)
    slowest, accepted, shown = 0.0, 0, 0
    corpus = {name: CORPUS[name]() for name in names}
    with target.watched() as seen:
        for name, graph in corpus.items():
            began = time.monotonic()
            try:
                reply = upload(target, graph)
            except (OSError, http.client.HTTPException) as error:
                outcome.missed.append(f"{name}: {error!r}")
                continue
            slowest = max(slowest, time.monotonic() - began)
            outcome.figures[f"{name}, status"] = reply.status
            if reply.status >= 500:
                outcome.missed.append(f"{name}: {reply.status} {reply.content[:200]!r}")
            accepted += reply.status == 201
            shown += shows_secret(reply.content.decode())
    models = target.service.send("GET", "/v1/admin/models").body["models"]
    shown += shows_secret(target.service.log.read_text(errors="replace"))
    audited = target.service.send("GET", "/v1/admin/audit?limit=100&action=models.refuse").body["audit"]
    outcome.expect("stored", sum(model["name"] == "hostile" for model in models), below=1)
    outcome.expect("accepted", accepted, below=1)
    outcome.expect("secrets shown", shown, below=1)
    outcome.expect("refused without an audit entry", len(names) - len(audited), below=1)
    outcome.expect_in_time("slowest answer, s", slowest, below=8)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    outcome.expect("memory growth, MB", seen.growth_megabytes, below=2000)
    outcome.expect(
        "memory kept, MB", sum(target.memory().values()) - sum(seen.memory_before.values()), below=100
    )
    return outcome


def upload(target: Target, graph: HostileGraph, document: Mapping[str, object] = DOCUMENT) -> Reply:
    """Send a graph to `POST /v1/admin/models`."""
    boundary = secrets.token_hex(16)
    parts = [("document", None, json.dumps(document).encode()), ("onnx", "graph.onnx", graph.content)]
    parts += [("external_data", name, content) for name, content in graph.external_data.items()]
    body = b""
    for field, file, content in parts:
        named = f'; filename="{file}"' if file else ""
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"{named}\r\n\r\n'.encode()
        body += content + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    kind = f"multipart/form-data; boundary={boundary}"
    return target.service.send("POST", "/v1/admin/models", body, Content_Type=kind)


def shows_secret(text: str) -> bool:
    """Whether a text contains the canary, as text or as the values of its bytes."""
    return CANARY[:4].decode() in text or CANARY_NUMBERS in text.replace(" ", "")
