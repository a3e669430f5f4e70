"""Binary encoding of log entries. A body begins with the digests of its request keys; scans read only those."""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from lifelong_core.store.engine.columns import pack_logits, unpack_logits
from lifelong_core.store.log.identifiers import is_prediction_id
from lifelong_core.store.log.records import LogEntry, Prediction, RequestKey
from lifelong_core.values.errors import InvalidInputError

_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<IHHiB")
"""Number of predictions; lengths in bytes of the request id (0: no request) and the body's digest; model id of the key;
length of the key's environment."""
_PREDICTION = struct.Struct("<16siiiBBI")
"""Id, model id, head version, decision; lengths in bytes of the environment and the group hash; number of classes."""
_NO_GROUP = 255
_NO_TOKEN = -1
DIGEST_BYTES = 8


def key_digest(key: RequestKey) -> int:
    """64-bit digest of a key; after a match, compare the keys, since digests may collide."""
    text = f"{key.model_id}\0{key.environment}\0{key.request_id}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest(), "little")


def key_digests(body: bytes, keys: int) -> tuple[int, ...]:
    """Digests of the request keys in a body, in the order of its entries."""
    return struct.unpack_from(f"<{keys}Q", body)


class EncodedEntries(NamedTuple):
    """The body of a record, its number of keys and its number of predictions."""

    body: bytes
    keys: int
    predictions: int


def encode_entries(entries: Sequence[LogEntry]) -> EncodedEntries:
    """Encode the entries as the body of one record.

    Raises:
        InvalidInputError: a value is too large for the log.
    """
    keys = [key_digest(entry.request) for entry in entries if entry.request is not None]
    parts = [struct.pack(f"<{len(keys)}Q", *keys), _COUNT.pack(len(entries))]
    try:
        for entry in entries:
            _encode(entry, parts)
        tokens = [_NO_TOKEN if entry.token_id is None else entry.token_id for entry in entries]
        parts.append(struct.pack(f"<{len(tokens)}i", *tokens))
    except (struct.error, UnicodeEncodeError) as error:
        raise InvalidInputError(f"a value does not fit into the log: {error}.") from error
    return EncodedEntries(b"".join(parts), len(keys), sum(len(entry.predictions) for entry in entries))


def decode_entries(body: bytes, keys: int) -> list[LogEntry]:
    """Return the entries in a body of `encode_entries`."""
    offset = keys * DIGEST_BYTES
    (count,) = _COUNT.unpack_from(body, offset)
    reader = _Reader(body, offset + _COUNT.size)
    entries = [reader.entry() for _ in range(count)]
    tokens = reader.tokens(count)
    return [
        entry if token == _NO_TOKEN else replace(entry, token_id=token)
        for entry, token in zip(entries, tokens, strict=True)
    ]


def _encode(entry: LogEntry, parts: list[bytes]) -> None:
    key = entry.request or RequestKey(0, "", "")
    request_id, environment = key.request_id.encode(), key.environment.encode()
    parts += (
        _ENTRY.pack(
            len(entry.predictions), len(request_id), len(entry.body_digest), key.model_id, len(environment)
        ),
        request_id,
        entry.body_digest,
        environment,
    )
    for prediction in entry.predictions:
        if not is_prediction_id(prediction.id):
            raise InvalidInputError(f"{prediction.id} is no id of a prediction.", field="id")
        group = prediction.group_hash
        if group is not None and len(group) >= _NO_GROUP:
            raise InvalidInputError("a group hash has at most 254 bytes.", field="group_hash")
        environment = prediction.environment.encode()
        parts += (
            _PREDICTION.pack(
                prediction.id.bytes,
                prediction.model_id,
                prediction.head_version,
                prediction.decision,
                len(environment),
                _NO_GROUP if group is None else len(group),
                prediction.logits.size,
            ),
            environment,
            group or b"",
            pack_logits(prediction.logits),
        )


class _Reader:
    """Reads the values of a body in sequence."""

    def __init__(self, body: bytes, offset: int) -> None:
        self._body = body
        self._offset = offset

    def entry(self) -> LogEntry:
        predictions, id_bytes, digest_bytes, model_id, name_bytes = _ENTRY.unpack_from(
            self._body, self._offset
        )
        self._offset += _ENTRY.size
        request_id = self._bytes(id_bytes).decode()
        digest = self._bytes(digest_bytes)
        environment = self._bytes(name_bytes).decode()
        key = RequestKey(model_id, environment, request_id) if request_id else None
        return LogEntry(tuple(self._prediction() for _ in range(predictions)), key, digest)

    def tokens(self, count: int) -> tuple[int, ...]:
        """Return the token id of each entry."""
        return struct.unpack_from(f"<{count}i", self._body, self._offset)

    def _prediction(self) -> Prediction:
        identity, model_id, head_version, decision, name_bytes, group_bytes, classes = (
            _PREDICTION.unpack_from(self._body, self._offset)
        )
        self._offset += _PREDICTION.size
        environment = self._bytes(name_bytes).decode()
        group = None if group_bytes == _NO_GROUP else self._bytes(group_bytes)
        logits = unpack_logits(self._bytes(4 * classes))
        return Prediction(UUID(bytes=identity), model_id, environment, head_version, decision, logits, group)

    def _bytes(self, count: int) -> bytes:
        start = self._offset
        self._offset += count
        return self._body[start : self._offset]
