"""A disk without space: 503 with Retry-After, no crash, and recovery as soon as there is space."""

import errno
import http.client
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.faults.trial import Outcome, Scale, Trial, under_load
from tests.faults.world import World, patiently
from tests.integration.installation import image

DISK = "64m"
_NAMES = {"{task}": "skin", "{model}": "linear", "{reference}": "linear", "{environment}": "disk-full"}
_MOST_UNANSWERED = 2
"""Each takes as long as the client waits."""
_START_SECONDS = 60.0
"""Time limit for the start of a worker, long enough for a busy machine."""
_BLOCK = bytes(1 << 16)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a separate disk in memory as the data directory of `folder`."""
    data = folder / "data"
    data.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(data)]
    mounted = subprocess.run(mounting, capture_output=True, text=True, check=False)
    assert mounted.returncode == 0, (
        f"a small disk cannot be mounted: {mounted.stderr.strip()} Run this as root, or in `unshare -Urm`."
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(data)], check=True)


def disk_full(world: World, scale: Scale) -> Outcome:
    """The disk of database, spool and temporary files is filled, all routes are asked, and a worker starts on it."""
    filler = world.settings.data_directory / "filler"
    # As in an image: there, BentoML does not replace workers by itself.
    image_like = {"TMPDIR": str(world.settings.data_directory), "BENTOML_CONTAINERIZED": "true"}
    world.start_service(environment=image_like)
    with under_load(world, "disk_full", scale) as trial:
        time.sleep(scale.of(5, 1))
        requests = _requests(world, trial)
        for _ in range(scale.count(5, 1)):
            began = time.monotonic()
            with trial.fault():
                fill(filler)
                time.sleep(scale.of(10, 1))
                processes = {process.pid for process in world.service.processes()}
                trial.violations += _unanswered(world, requests)
                if not processes <= {process.pid for process in world.service.processes()}:
                    trial.violations.append("a process of the service died of a full disk")
                _replace_a_worker(world, trial)
                filler.unlink()
            freed_at = time.monotonic()
            time.sleep(scale.of(5, 2))
            _expect_recovery(trial, began, freed_at)
        trial.figures["disk"] = DISK
        trial.figures["requests_of_other_routes"] = trial.faults * len(requests)
        return trial.conclude()


@dataclass(frozen=True)
class _Asked:
    """A request to a route that the load does not use."""

    method: str
    path: str
    content_type: str = "application/json"
    body: bytes = b"{}"


def _requests(world: World, trial: Trial) -> list[_Asked]:
    """A request to each documented route, and some that write."""
    paths = world.service.send("GET", "/openapi.json").body["paths"]
    asked: list[_Asked] = []
    for path, operations in paths.items():
        for method in operations:
            # Others name nothing that exists: a change might find space.
            names = _NAMES if method == "get" else {}
            filled = "/".join(names.get(part, "1") if part[:1] == "{" else part for part in path.split("/"))
            asked.append(_Asked(method.upper(), filled))
    documents = {
        "/v1/feedback": {"prediction_id": str(trial.load.answers[0].prediction_ids[0]), "label": "benign"},
        "/v1/admin/tasks": {"name": "other", "classes": ["a", "b"], "costs": [[0, 1], [1, 0]]},
        "/v1/admin/tokens": {"name": "other", "scopes": ["read"]},
    }
    asked += [_Asked("POST", path, body=json.dumps(one).encode()) for path, one in documents.items()]
    form = (
        b"--x\r\nContent-Disposition: form-data; name=onnx; filename=x\r\n\r\n"
        + bytes(2**21)
        + b"\r\n--x--\r\n"
    )
    login = f"token={world.installation.token}".encode()
    return [
        *asked,
        *(_Asked("POST", "/v1/predict", f"image/{kind}", image(kind)) for kind in ("png", "tiff")),
        _Asked("POST", "/v1/admin/tasks/skin/fingerprints", "application/zip", b"PK\3\4" + bytes(2**21)),
        _Asked("POST", "/v1/admin/models", "multipart/form-data; boundary=x", form),
        _Asked("POST", "/console/login", "application/x-www-form-urlencoded", login),
        _Asked("GET", "/console"),
        _Asked("GET", "/missing"),
    ]


def _unanswered(world: World, requests: Sequence[_Asked]) -> list[str]:
    """Requests that get no answer, another failure than 503, or an answer without text."""
    found: list[str] = []
    for asked in requests:
        if len(found) == _MOST_UNANSWERED:
            break
        name = f"{asked.method} {asked.path} of {asked.content_type} on a full disk"
        try:
            reply = world.service.send(asked.method, asked.path, asked.body, Content_Type=asked.content_type)
        except (OSError, http.client.HTTPException) as error:
            found.append(f"{name}: no answer, {error!r}")
        else:
            if reply.status >= 500 and (reply.status != 503 or not reply.content):
                found.append(f"{name}: {reply.status} {reply.content[:200]!r}")
    return found


def _replace_a_worker(world: World, trial: Trial) -> None:
    """Kill a worker on the full disk; its successor answers probes and metrics."""
    world.random.choice(world.service.workers()).kill()
    seen: set[str] = set()

    def answered() -> bool:
        with suppress(OSError, http.client.HTTPException):
            replies = [world.service.send("GET", path) for path in ("/livez", "/metrics")]
            seen.update(reply.worker for reply in replies if reply.status == 200)
        return len(seen) == 2

    if patiently(lambda: len(world.service.workers()) == 2 and answered(), _START_SECONDS) is None:
        trial.violations.append(f"only the workers {seen} answer on a full disk")


def _expect_recovery(trial: Trial, began: float, freed_at: float) -> None:
    """Check that requests were refused while the disk was full, and answered again without a restart."""
    answers = list(trial.load.answers)
    if not any(one.refusals for one in answers if began <= one.due_at <= freed_at):
        trial.violations.append("no request was refused while the disk was full: it was not")
    recovered = [one.received_at for one in answers if one.sent_at > freed_at]
    if recovered:
        seconds = min(recovered) - freed_at
        trial.figures["seconds_to_recover"] = max(seconds, trial.figures.get("seconds_to_recover", 0.0))
    else:
        trial.violations.append("no request was answered when there was space again")


def fill(file: Path) -> None:
    """Write to the file until the disk is full."""
    with file.open("wb", buffering=0) as stream:
        block = _BLOCK
        while block:
            try:
                stream.write(block)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                block = block[: len(block) // 2]
