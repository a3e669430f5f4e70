"""Small documents and arrays that expand in memory: other requests are not slowed down."""

import json
import time
import warnings
import zipfile
from io import BytesIO
from itertools import cycle, islice, product

import numpy as np

from lifelong_service.bodies.json_documents import MAXIMUM_CONTAINERS, MAXIMUM_NAMES, MAXIMUM_VALUES
from tests.attacks.attack import QUICK, Outcome, Scale, flood
from tests.attacks.target import Target

LOGITS = ("/v1/logits",)
FEEDBACK = ("/v1/feedback",)
LABELLED = ("/v1/admin/models/linear/calibration-sets", "/v1/admin/models/linear/validations")
REPORTS = ("/v1/admin/models/remote/reports?against=linear",)
DOCUMENTS = (
    "/v1/admin/tasks",
    "/v1/admin/tasks/skin/recommendations",
    "/v1/admin/tokens",
    "/v1/admin/interviews",
    "/v1/admin/models",
    "/v1/admin/models/linear/heads",
)
FORMS = ("/v1/predict", "/v1/admin/models/linear/logits", *LABELLED, "/v1/admin/models")

BOUNDARY = "xxxxxxxx"


def unknown_names(size: int) -> bytes:
    """Unknown names, each of which could cause a separate error."""
    return ("{" + ",".join(f'"{name:06x}":0' for name in range(size // 11)) + "}").encode()


def wrong_elements(field: str, size: int, *, wrong: bytes = b"{}") -> bytes:
    """A list with only elements of a wrong type."""
    return b'{"%s":[' % field.encode() + wrong + (b"," + wrong) * (size // (len(wrong) + 1)) + b"]}"


def one_long_text(size: int) -> bytes:
    """One long text: in an array, all texts get the size of the longest."""
    texts = ",".join(['"' + "a" * (size // 2) + '"', *['""'] * (size // 6)])
    return f'{{"logits": [[{texts}]]}}'.encode()


def nested(size: int) -> bytes:
    """Nested lists."""
    return b'{"logits":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}"


def documents(size: int) -> dict[str, bytes]:
    """JSON bodies of about `size` bytes, by description."""
    fields = ("logits", "labels", "groups", "classes", "costs", "scopes", "class_names", "thresholds")
    return {
        "unknown names": unknown_names(size),
        "unknown names in a list": b'{"labels":[' + unknown_names(size) + b"]}",
        "U+0000 among many values": b'{"logits":[["\\u0000"' + b",0" * (size // 2) + b"]]}",
        "numbers": b'{"logits":[[0' + b",0" * (size // 2) + b"]]}",
        "a number of many digits": b'{"logits":[[' + b"1" * size + b"]]}",
        "empty lists": wrong_elements("logits", size, wrong=b"[]"),
        "nested lists": nested(size),
        "one long text": one_long_text(size),
        "wrong groups beside no logits": b'{"logits":[],"groups":[1' + b",1" * (size // 2) + b"]}",
        **{f"wrong {field}": wrong_elements(field, size) for field in fields},
    }


def documents_at_limits() -> dict[str, bytes]:
    """The costliest bodies that are parsed."""
    names = b"{" + b",".join(b'"%d":0' % index for index in range(MAXIMUM_NAMES - 1)) + b"}"
    values = b'{"logits":[[0.5' + b",0.5" * (MAXIMUM_VALUES - 9) + b"]]"
    return {
        "as many names": names,
        "as many names in a list": b'{"labels":[%s]}' % names,
        "as many lists": wrong_elements("logits", 3 * (MAXIMUM_CONTAINERS - 10), wrong=b"[]"),
        "as many values": values + b"}",
        "as many values and U+0000": values + b',"model":"\\u0000"}',
        "as many values and a wrong name": values + b',"modle":"linear"}',
    }


def npz(**arrays: bytes) -> bytes:
    """An npz file with these bytes as entries."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def zeros(samples: int, kind: str, *shape: int) -> bytes:
    """An npy file of zeros."""
    file = BytesIO()
    np.save(file, np.zeros((samples, *shape), kind))
    return file.getvalue()


def header(descr: str, *shape: int, blanks: int = 0) -> bytes:
    """An npy file that declares more than follows, which is nothing."""
    text = " " * blanks + repr({"descr": descr, "fortran_order": False, "shape": shape})
    return b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text.encode()


def archives(samples: int) -> dict[str, bytes]:
    """npz files that unpack to far larger sizes, by description."""
    labels = zeros(samples, "i1")
    lying = bytearray(npz(logits=zeros(samples, "f4", 3), labels=labels))
    place = lying.index(b"PK\x01\x02") + 24  # the size that the directory declares
    lying[place : place + 4] = (1000).to_bytes(4, "little")
    bz2 = BytesIO()
    with zipfile.ZipFile(bz2, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("logits.npy", zeros(samples, "f4", 3))
    entries = BytesIO()
    with zipfile.ZipFile(entries, "w") as archive:
        for entry in range(samples // 200):
            archive.writestr(f"{entry}.npy", b"")
    twice = BytesIO(npz(logits=zeros(20, "f4", 3), labels=zeros(20, "i1")))
    with warnings.catch_warnings(), zipfile.ZipFile(twice, "a", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        archive.writestr("logits.npy", zeros(samples // 10, "f4", 3))
    texts = header("<U0", 10**9)
    return {
        "texts of no characters": npz(
            logits=zeros(20, "f4", 3), current_logits=zeros(20, "f4", 3), labels=texts
        ),
        "a negative shape": npz(logits=header("<f8", 10**9, 3), labels=header("<f8", -(10**10))),
        "a header of megabytes": npz(logits=header("<f8", 20, 3, blanks=30_000_000), labels=labels),
        "objects": npz(logits=header("|O", 20, 3), labels=labels),
        "two entries of one name": twice.getvalue(),
        "zeros": npz(logits=zeros(samples, "f4", 3), labels=labels),
        "one byte each": npz(logits=zeros(samples, "i1", 3), labels=labels),
        "long groups": npz(logits=zeros(100, "f4", 3), labels=zeros(100, "i1"), groups=zeros(100, "U100000")),
        "a size that is a lie": bytes(lying),
        "bzip2": bz2.getvalue(),
        "many entries": entries.getvalue(),
    }


def forms(count: int) -> dict[str, bytes]:
    """Multipart forms of many parts, by description."""
    field = b'--%s\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' % BOUNDARY.encode()
    file = (
        b'--%s\r\nContent-Disposition: form-data; name="images"; filename="b"\r\n\r\n\r\n' % BOUNDARY.encode()
    )
    headers = b"--%s\r\n" % BOUNDARY.encode() + b"a: b\r\n" * count
    return {"many fields": field * count, "many files": file * count, "many headers": headers}


def json_bombs(target: Target, scale: Scale) -> Outcome:
    """A stream of JSON documents, npz files and forms that grow a hundredfold as Python objects.

    Each is sent to routes that accept its type, then several clients send all of them at once.
    """
    size, samples = (18_000_000, 100_000_000) if scale is not QUICK else (4_200_000, 20_000_000)
    outcome = Outcome()
    corpus = _requests(size, samples, is_quick=scale is QUICK)
    _warm_up(target)
    with target.watched() as seen:
        slowest = 0.0
        for path, kind, body in corpus:
            began = time.monotonic()
            status = _send(target, path, kind, body)
            slowest = max(slowest, time.monotonic() - began)
            if status >= 500 or status < 400:
                outcome.missed.append(f"{path} answered {status} to {kind}: {body[:40]!r}")
        with flood(
            scale.clients,
            scale.seconds,
            lambda client, turn: _send(target, *corpus[(client * 17 + turn) % len(corpus)]),
        ):
            pass
    outcome.expect_in_time("worst single body, s", slowest, below=2)
    outcome.expect_in_time("innocent p99, s", seen.predictions.percentile(99), below=0.25)
    outcome.expect("innocent failures", len(seen.predictions.failures), below=1)
    outcome.expect_in_time("/livez p99, s", seen.livez.percentile(99), below=0.1)
    # The goal is 100; 111 and 149 were measured.
    outcome.expect("memory growth of a worker, MB", seen.worker_growth_megabytes, below=160)
    outcome.expect("memory growth, MB", seen.growth_megabytes, below=220)
    outcome.figures["worst /livez, s"] = round(max(seen.livez.seconds), 4)
    outcome.figures["innocent requests"] = len(seen.predictions.seconds)
    outcome.figures["attacking bodies"] = len(corpus)
    return outcome


def _warm_up(target: Target) -> None:
    """Let both workers import the modules of their routes, whose memory is not due to the attack."""
    small = {"name": "warm", "logits": [[1.0, 2.0, 3.0]], "labels": [0], "answers": {"FP2.6": "argmax"}}
    fingerprint = json.dumps({"fingerprint": {"number_of_classes": 3}}).encode()
    for path in (*LOGITS, *FEEDBACK, *LABELLED, *DOCUMENTS):
        for body in (json.dumps(small).encode(), fingerprint, b'{"answers": {"FP2.6": "argmax"}}'):
            for _ in range(8):
                _send(target, path, "application/json", body)


def _requests(size: int, samples: int, *, is_quick: bool) -> list[tuple[str, str, bytes]]:
    """Path, content type and body of each request: bodies just below the limit of JSON, and above it.

    In the quick form every route and every body occurs, in the full one every body at every route.
    """
    small = documents(3_900_000) | documents_at_limits()
    kinds = (
        ("application/json", (*LOGITS, *FEEDBACK, *LABELLED, *DOCUMENTS), small),
        ("application/json", (*LOGITS, *LABELLED), documents(size)),
        ("application/x-npz", (*LABELLED, *REPORTS), archives(samples)),
        (f"multipart/form-data; boundary={BOUNDARY}", FORMS, forms(size // 100)),
    )
    found: list[tuple[str, str, bytes]] = []
    for kind, paths, bodies in kinds:
        pairs = product(paths, bodies.values())
        if is_quick:
            longest = max(len(paths), len(bodies))
            pairs = islice(zip(cycle(paths), cycle(bodies.values())), longest)
        found += [(path, kind, body) for path, body in pairs]
    return found


def _send(target: Target, path: str, kind: str, body: bytes) -> int:
    try:
        return target.service.send("POST", path, body, Content_Type=kind).status
    except OSError:  # refused by its length: the service closes the connection before it has read the body
        return 413
