"""The file of a query index: a cache made from fingerprints, named after what it holds.

Layout: a magic number, sections of numbers at multiples of 64 bytes, and at the end a description (JSON), its
SHA-256, its length and the magic number again. A file appears at once under its name, complete, however many
processes build it; one that is damaged is built again.
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import math
import os
import struct
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.runtime.files import reserve
from lifelong_core.values.arrays import Floats, Integers
from lifelong_core.values.errors import InvalidInputError

SCHEMA_VERSION = 1

_MAGIC = b"LLINDEX\n"
_TAIL = struct.Struct("<32sQ8s")
"""SHA-256 of the description, its length, the magic number."""
_ALIGNMENT = 64
_LARGEST = np.iinfo(np.uint16).max
_TASKS_AT_ONCE = 64
"""Fingerprints in memory while a file is built."""
_READ_BYTES = 2**20
_MOST_VERIFIED_BYTES = 256 * 2**20
_UNFINISHED = ".building-"
_DIRECTIONS = 16
_ROUNDING = 1e-6
"""More than the error of a length by rounding; lengths are at most 1."""
_DAMAGED = (OSError, ValueError, KeyError, TypeError, struct.error)

Load = Callable[[str], HistogramFingerprint]


@dataclass(frozen=True, eq=False)
class IndexFile:
    """The mapped sections of a file, for K tasks, m features and B bins.

    A row is the position of a task. Counts above 65,535 are in `wide_counts`; the rows of such tasks in `counts` are 0.
    """

    tasks: tuple[str, ...]
    """in alphabetical order"""
    extractor: str
    counts: NDArray[np.uint16]
    """(m, K, B)"""
    wide_rows: Integers
    wide_counts: NDArray[np.uint32]
    """(m, W, B)"""
    totals: Integers
    """(m, K): sums of the counts of each feature; they differ only in private fingerprints"""
    log_sums: Floats
    """(m, K): logarithm of the sum of the exponentials of a histogram"""
    shares: NDArray[np.float32]
    """(m, K): mean shares"""
    source_constants: Floats
    """(K,): sum of shares times log_sums"""
    basis: Floats
    """(B, G), orthonormal: principal directions of histograms"""
    coarse: NDArray[np.float32]
    """(K, m G): coordinates of the histograms in the basis"""
    residuals: NDArray[np.float32]
    """(m, K): at least the Euclidean length of what the basis leaves of a histogram"""
    samples: Integers | None
    """(K,): totals, where they are the same for all features of each task"""

    @property
    def features(self) -> int:
        """Number of features, m."""
        return self.counts.shape[0]

    @property
    def bins(self) -> int:
        """Number of bins of each feature, B."""
        return self.counts.shape[2]

    def counts_of(self, row: int) -> NDArray[np.uint32]:
        """Counts (m, B) of one task."""
        place = np.flatnonzero(self.wide_rows == row)
        return self.wide_counts[:, place[0]] if place.size else self.counts[:, row].astype(np.uint32)

    def totals_of(self, row: int) -> Integers:
        """Sums (m,) of the counts of one task."""
        return self.totals[:, row]

    @classmethod
    def open(cls, folder: Path, digests: Mapping[str, str], load: Load, *, verify: bool = True) -> Self:
        """Map the file of these fingerprints; build it first where it is missing or damaged.

        Args:
            folder: of the cache; it is made if it is missing.
            digests: of the histogram fingerprints, by task.
            load: gives the fingerprint of a task; only called to build the file.
            verify: whether to compare all bytes with their digest; about a second for 1 GB.

        Raises:
            InvalidInputError: there is no fingerprint, or they are of several extractors or sizes, or one has another
                digest.
            OSError: the folder cannot be written.
        """
        if (found := cls.find(folder, digests, verify=verify)) is not None:
            return found
        path = _path(folder, digests)
        folder.mkdir(parents=True, exist_ok=True)
        # Mapped before it gets its name: another process may remove or replace it at any time afterwards.
        with _building(path) as file:
            basis = _principal_directions([load(task) for task in _spread(sorted(digests))])
            _write(file, sorted(digests), _load_all(digests, load), basis)
            return cls._map(file, sorted(digests), verify=False)

    @classmethod
    def find(cls, folder: Path, digests: Mapping[str, str], *, verify: bool | None = None) -> Self | None:
        """Map the file of these fingerprints, as `open`; None: it is missing or damaged.

        Args:
            folder: of the cache.
            digests: of the histogram fingerprints, by task.
            verify: None: only a file that is read within a second.
        """
        with contextlib.suppress(*_DAMAGED), _path(folder, digests).open("rb") as file:
            is_small = os.fstat(file.fileno()).st_size <= _MOST_VERIFIED_BYTES
            return cls._map(file, sorted(digests), verify=is_small if verify is None else verify)
        return None

    @classmethod
    def _map(cls, file: BinaryIO, tasks: Sequence[str], *, verify: bool) -> Self:
        """Raises one of `_DAMAGED` if the file is damaged."""
        description = _read_description(file)
        if description["tasks"] != list(tasks):
            raise ValueError("other tasks")
        if verify and _digest_of(file, description["end"]) != description["digest"]:
            raise ValueError("damaged sections")
        mapped: dict[str, Any] = {
            name: np.memmap(file, mode="r", dtype=dtype, offset=offset, shape=tuple(shape))
            if 0 not in shape
            else np.zeros(shape, dtype)
            for name, (dtype, shape, offset) in description["sections"].items()
        }
        totals = mapped["totals"]
        samples = totals[0] if (totals == totals[0]).all() else None
        return cls(tuple(tasks), description["extractor"], samples=samples, **mapped)


def remove_other_indexes(folder: Path, digests: Iterable[Mapping[str, str]]) -> None:
    """Remove all index files of the folder but those of these fingerprints, and the drafts of killed processes.

    Processes that have mapped a file keep it.
    """
    kept = {_path(folder, one).name for one in digests}
    for path in folder.glob("*.index"):
        is_unfinished = path.name.startswith(_UNFINISHED)
        if _is_abandoned(path) if is_unfinished else path.name not in kept:
            path.unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    """Whether no process holds the lock of this unfinished file; it is empty until its process has the lock."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return os.fstat(file.fileno()).st_size > 0
    return False


def _path(folder: Path, digests: Mapping[str, str]) -> Path:
    """Of the file; its name is the SHA-256 over the version, the tasks and the digests of their fingerprints."""
    content = [SCHEMA_VERSION, sorted(digests.items())]
    return folder / f"{hashlib.sha256(json.dumps(content).encode()).hexdigest()}.index"


@contextlib.contextmanager
def _building(path: Path) -> Generator[BinaryIO]:
    """A new file that gets its name at the end; it is removed if building it fails."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED, suffix=".index")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with os.fdopen(handle, "r+b") as file:
            yield file
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _load_all(digests: Mapping[str, str], load: Load) -> Iterator[HistogramFingerprint]:
    """Fingerprints in the order of the names, checked."""
    first: HistogramFingerprint | None = None
    for task in sorted(digests):
        fingerprint = load(task)
        first = first or fingerprint
        if fingerprint.digest != digests[task]:
            raise InvalidInputError(f"the fingerprint of {task} has another digest.", field="fingerprints")
        if fingerprint.extractor != first.extractor or fingerprint.counts.shape != first.counts.shape:
            raise InvalidInputError(
                f"the fingerprint of {task} is of another extractor or size than that of {min(digests)}.",
                field="fingerprints",
                hint="Make one index for each extractor and number of bins.",
            )
        yield fingerprint
    if first is None:
        raise InvalidInputError("expected at least one fingerprint.", field="fingerprints")


def _spread(tasks: Sequence[str]) -> Sequence[str]:
    """At most `_TASKS_AT_ONCE` tasks, evenly over all."""
    return tasks[:: -(-len(tasks) // _TASKS_AT_ONCE) or 1]


def _principal_directions(fingerprints: Iterable[HistogramFingerprint]) -> Floats:
    """Directions (B, G) in which the histograms of all features have most of their length."""
    inner = [histograms.T @ histograms for histograms in (one.histograms for one in fingerprints)]
    if len({matrix.shape for matrix in inner}) != 1:
        return np.zeros((0, 0))  # refused by `_load_all`, with the name of the task
    _, vectors = np.linalg.eigh(np.sum(inner, axis=0))
    return np.asarray(vectors[:, ::-1][:, :_DIRECTIONS], dtype=np.float64)


def _write(
    file: BinaryIO, tasks: Sequence[str], fingerprints: Iterator[HistogramFingerprint], basis: Floats
) -> None:
    first = next(fingerprints)
    (features, bins), count = first.counts.shape, len(tasks)
    sections = _lay_out(
        {
            "counts": ("<u2", (features, count, bins)),
            "totals": ("<i8", (features, count)),
            "log_sums": ("<f8", (features, count)),
            "shares": ("<f4", (features, count)),
            "source_constants": ("<f8", (count,)),
            "basis": ("<f8", basis.shape),
            "coarse": ("<f4", (count, features * basis.shape[1])),
            "residuals": ("<f4", (features, count)),
        },
        start=len(_MAGIC),
    )
    end = _end_of(sections)
    reserve(file, end)
    file.write(_MAGIC)
    file.flush()
    arrays: dict[str, NDArray[Any]] = {
        name: np.memmap(file, mode="r+", dtype=dtype, offset=offset, shape=shape)
        for name, (dtype, shape, offset) in sections.items()
    }
    arrays["basis"][:] = basis
    wide = _fill(arrays, itertools.chain([first], fingerprints))
    rows = np.array(list(wide), dtype="<i8")
    columns = np.stack(list(wide.values()), axis=1) if wide else np.zeros((features, 0, bins))
    for name, array in {"wide_rows": rows, "wide_counts": columns.astype("<u4")}.items():
        end += -end % _ALIGNMENT
        sections[name] = (array.dtype.str, array.shape, end)
        file.seek(end)
        file.write(array.tobytes())
        end += array.nbytes
    _write_description(file, end, {"tasks": tasks, "extractor": first.extractor, "sections": sections})


def _fill(
    arrays: Mapping[str, NDArray[Any]], fingerprints: Iterator[HistogramFingerprint]
) -> dict[int, NDArray[Any]]:
    """Fill the sections; returns the counts of tasks whose counts do not fit into 16 bits, by row."""
    wide: dict[int, NDArray[Any]] = {}
    start = 0
    while block := list(itertools.islice(fingerprints, _TASKS_AT_ONCE)):
        rows = slice(start, start + len(block))
        counts = np.stack([one.counts for one in block], axis=1)
        for place in np.flatnonzero(counts.max(axis=(0, 2)) > _LARGEST).tolist():
            wide[start + place] = counts[:, place].copy()
            counts[:, place] = 0
        log_sums = np.stack([np.log(np.exp(one.histograms).sum(axis=1)) for one in block], axis=1)
        shares = np.stack([one.mean_shares for one in block], axis=1)
        arrays["counts"][:, rows] = counts
        arrays["totals"][:, rows] = np.stack(
            [one.counts.sum(axis=1, dtype=np.int64) for one in block], axis=1
        )
        arrays["log_sums"][:, rows] = log_sums
        arrays["shares"][:, rows] = shares
        arrays["source_constants"][rows] = (shares * log_sums).sum(axis=0)
        for row, one in enumerate(block, start):
            arrays["coarse"][row], arrays["residuals"][:, row] = _reduce(one.histograms, arrays["basis"])
        start += len(block)
    return wide


def _reduce(histograms: Floats, basis: Floats) -> tuple[Floats, Floats]:
    """Coordinates (m G,) of histograms (m, B) in the basis, and lengths (m,) of what is left, rounded up."""
    coarse = histograms @ basis
    return coarse.ravel(), residual_lengths(histograms, coarse)


def residual_lengths(histograms: Floats, coarse: Floats) -> Floats:
    """Upper bounds of the lengths (m,) of the residuals of histograms (m, B) with coordinates (m, G)."""
    squares = (histograms**2).sum(axis=1) - (coarse**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)) * (1 + _ROUNDING) + _ROUNDING)


def _lay_out(
    sections: Mapping[str, tuple[str, tuple[int, ...]]], start: int
) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Type, shape and offset of each section."""
    placed: dict[str, tuple[str, tuple[int, ...], int]] = {}
    for name, (dtype, shape) in sections.items():
        start += -start % _ALIGNMENT
        placed[name] = (dtype, shape, start)
        start += math.prod(shape) * np.dtype(dtype).itemsize
    return placed


def _end_of(sections: Mapping[str, tuple[str, tuple[int, ...], int]]) -> int:
    return max(
        offset + math.prod(shape) * np.dtype(dtype).itemsize for dtype, shape, offset in sections.values()
    )


def _write_description(file: BinaryIO, end: int, fields: Mapping[str, Any]) -> None:
    file.truncate(end)
    digest = _digest_of(file, end)
    text = json.dumps({**fields, "end": end, "digest": digest}).encode()
    file.seek(end)
    file.write(text + _TAIL.pack(hashlib.sha256(text).digest(), len(text), _MAGIC))
    file.flush()


def _read_description(file: BinaryIO) -> dict[str, Any]:
    """Raises one of `_DAMAGED` if there is none, or if file and description do not fit together."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _TAIL.size, 0))
    digest, length, magic = _TAIL.unpack(file.read())
    start = size - _TAIL.size - length
    if magic != _MAGIC or start < 0:
        raise ValueError("no index file")
    file.seek(start)
    text = file.read(length)
    if hashlib.sha256(text).digest() != digest:
        raise ValueError("damaged description")
    description: dict[str, Any] = json.loads(text)
    if description["end"] != start:
        raise ValueError("truncated sections")
    return description


def _digest_of(file: BinaryIO, end: int) -> str:
    """SHA-256 (hex) of the first `end` bytes."""
    digest = hashlib.sha256()
    file.seek(0)
    left = end
    while left and (part := file.read(min(left, _READ_BYTES))):
        digest.update(part)
        left -= len(part)
    return digest.hexdigest()
