import json
from collections.abc import Callable

import numpy as np
import pytest

from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint
from lifelong_core.develop.fingerprints.fisher import KeywordFingerprint
from lifelong_core.develop.knowledge.bundle import (
    BundleLimits,
    read_bundle,
    write_bundle,
    write_unsigned_bundle,
)
from lifelong_core.develop.knowledge.signing import SigningKey
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.npz import read_npz, write_npz
from tests.unit.develop.knowledge.examples import make_entry, make_fingerprint

KEY = SigningKey.generate()
TRUSTED = {"heidelberg": KEY.public_key}
ENTRIES = [
    make_entry("a", transfers={("pretraining", "b"): (0.1, 0.2)}).model_copy(
        update={"licence": "CC-BY-4.0", "contact": "data@example.org"}
    ),
    make_entry("b", distances={"FID": {"a": 1.5}}),
]
FINGERPRINTS = {
    "a": (make_fingerprint(1), make_fingerprint(2, bins=7), KeywordFingerprint(("medical",))),
    "elsewhere": (make_fingerprint(3),),
}
PARTS = ("header", "fingerprints", "public_key", "signature")


def signed() -> bytes:
    return write_bundle(ENTRIES, FINGERPRINTS, KEY)


def unpack(content: bytes) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in read_npz(content, PARTS, field="bundle").items()}


def pack(parts: dict[str, bytes]) -> bytes:
    return write_npz({name: np.frombuffer(part, np.uint8) for name, part in parts.items()})


def unsigned(change: Callable[[dict], None] = lambda _: None, extra: bytes = b"") -> bytes:
    """An unsigned bundle with a changed header and further bytes behind the fingerprints."""
    parts = unpack(write_unsigned_bundle(ENTRIES, FINGERPRINTS))
    header = json.loads(parts["header"])
    change(header)
    return pack(
        parts | {"header": json.dumps(header).encode(), "fingerprints": parts["fingerprints"] + extra}
    )


def refuse(content: bytes, message: str, **options: object) -> InvalidInputError:
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_bundle(content, TRUSTED, **options)  # type: ignore[arg-type]
    return caught.value


def test_a_bundle_is_read_as_it_was_written() -> None:
    bundle = read_bundle(signed(), TRUSTED)
    assert list(bundle.knowledge.entries.values()) == ENTRIES
    assert bundle.knowledge.entry("a").contact == "data@example.org"
    assert dict(bundle.knowledge.fingerprints) == {"a": FINGERPRINTS["a"]}
    assert (bundle.signer, bundle.public_key) == ("heidelberg", KEY.public_key)


def test_equal_content_gives_equal_bytes_and_digests() -> None:
    assert signed() == signed()
    other = write_bundle(ENTRIES[:1], FINGERPRINTS, KEY)
    assert read_bundle(signed(), TRUSTED).digest != read_bundle(other, TRUSTED).digest


@pytest.mark.parametrize("part", PARTS)
def test_a_changed_byte_is_refused(part: str) -> None:
    parts = unpack(signed())
    for place in (0, len(parts[part]) // 2, len(parts[part]) - 1):
        changed = bytearray(parts[part])
        changed[place] ^= 1
        with pytest.raises(InvalidInputError):
            read_bundle(pack(parts | {part: bytes(changed)}), TRUSTED, accept_unsigned=True)


def test_a_changed_measurement_is_a_forgery() -> None:
    parts = unpack(signed())
    forged = pack(parts | {"header": parts["header"].replace(b"0.2", b"0.9")})
    assert "changed or damaged" in refuse(forged, "not that of heidelberg").message


def test_bytes_moved_between_header_and_fingerprints_are_a_forgery() -> None:
    parts = unpack(signed())
    moved = {"header": parts["header"] + parts["fingerprints"][:1], "fingerprints": parts["fingerprints"][1:]}
    refuse(pack(parts | moved), "not that of heidelberg|JSON")


def test_a_signature_of_a_key_that_is_not_trusted_is_refused() -> None:
    stranger = SigningKey.generate()
    error = refuse(write_bundle(ENTRIES, FINGERPRINTS, stranger), "not trusted")
    assert stranger.public_key in error.message
    assert error.field == "bundle"
    parts = unpack(write_bundle(ENTRIES, FINGERPRINTS, stranger))
    refuse(pack(parts | {"public_key": bytes.fromhex(KEY.public_key)}), "not that of heidelberg")


def test_a_bundle_without_its_signature_is_refused_unless_asked_for() -> None:
    stripped = pack(unpack(signed()) | {"public_key": b"", "signature": b""})
    assert stripped == write_unsigned_bundle(ENTRIES, FINGERPRINTS)
    refuse(stripped, "not signed")
    bundle = read_bundle(stripped, TRUSTED, accept_unsigned=True)
    assert (bundle.signer, bundle.public_key) == (None, None)
    assert bundle.knowledge == read_bundle(signed(), TRUSTED).knowledge
    half = pack(unpack(signed()) | {"signature": b""})
    refuse(half, "not that of heidelberg", accept_unsigned=True)


def test_a_truncated_bundle_is_refused() -> None:
    content = signed()
    for length in (0, 10, len(content) // 2, len(content) - 1):
        refuse(content[:length], "npz file", accept_unsigned=True)


def test_a_newer_version_is_named_before_anything_else() -> None:
    def change(header: dict) -> None:
        header.clear()
        header.update(schema_version=2, tables=[])

    error = refuse(unsigned(change), "schema version 2, this program reads 1")
    assert error.hint == "Update lifelong, or ask the sender to export with an older version."


def test_another_extractor_is_refused() -> None:
    assert read_bundle(signed(), TRUSTED, extractors={"a" * 64, "b" * 64}).knowledge.fingerprints
    refuse(signed(), "another extractor: aaaa", extractors={"b" * 64})
    refuse(signed(), "another extractor", extractors=())
    without = write_bundle(ENTRIES, {"a": (KeywordFingerprint(("medical",)),)}, KEY)
    assert read_bundle(without, TRUSTED, extractors=()).knowledge.fingerprints


def test_features_of_single_images_are_neither_written_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprints = {"a": (FeatureFingerprint("a" * 64, 3, np.ones((3, 2))),)}
    with pytest.raises(InvalidInputError, match="single images"):
        write_bundle(ENTRIES, fingerprints, KEY)
    with monkeypatch.context() as patched:
        patched.setattr(FeatureFingerprint, "is_shareable", True)
        content = write_bundle(ENTRIES, fingerprints, KEY)
    refuse(content, "single images")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header["entries"].append(header["entries"][0]), "two entries are of 'a'"),
        (lambda header: header["entries"][0]["card"].update(classes=1), "at least 2"),
        (lambda header: header["fingerprints"][0].update(task="z"), "no entry is of the task 'z'"),
        (lambda header: header["fingerprints"].pop(), "expected fingerprints of"),
        (lambda header: header["fingerprints"][0].update(bytes=10), "npz file"),
        (lambda header: header.update(more=1), "more"),
        (
            lambda header: header["entries"][0]["card"].update(dataset="a\x1b]52;c;YQ==\x07"),
            "control characters",
        ),
        (
            lambda header: header["entries"][1]["distances"].update({"\u202e": {"a": 1.0}}),
            "control characters",
        ),
    ],
)
def test_illegal_content_is_refused_although_it_is_accepted_unsigned(
    change: Callable[[dict], None], message: str
) -> None:
    assert read_bundle(unsigned(), TRUSTED, accept_unsigned=True)
    refuse(unsigned(change), message, accept_unsigned=True)


def test_bytes_behind_the_fingerprints_are_refused() -> None:
    refuse(unsigned(extra=b"x"), "expected fingerprints of", accept_unsigned=True)


def test_other_files_are_refused() -> None:
    refuse(b"not a file", "npz file")
    refuse(write_npz({"header": np.zeros(2)}), "lacks this array")
    refuse(write_npz({name: np.zeros(2) for name in PARTS}), "arrays of bytes")
    refuse(pack(unpack(signed()) | {"header": b"["}), "JSON")


def test_limits_hold_just_above_them() -> None:
    content = signed()
    memory = sum(
        sum(value.nbytes for value in vars(one).values() if isinstance(value, np.ndarray))
        for one in FINGERPRINTS["a"]
    )
    fitting = BundleLimits(bytes=len(content), entries=2, fingerprint_bytes=100 * memory)
    assert read_bundle(content, TRUSTED, limits=fitting)
    for limits in (
        BundleLimits(bytes=len(content) - 1),
        BundleLimits(entries=1),
        BundleLimits(fingerprint_bytes=100),
    ):
        with pytest.raises(PayloadTooLargeError):
            read_bundle(content, TRUSTED, limits=limits)


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    parts = unpack(signed()) | {"fingerprints": bytes(10_000_000)}
    content = pack(parts)
    assert len(content) < 100_000
    with pytest.raises(PayloadTooLargeError, match="unpacks to"):
        read_bundle(content, TRUSTED, limits=BundleLimits(bytes=len(content)))
