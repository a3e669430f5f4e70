"""Decoded and resized images in one file, so that each is decoded once however many epochs use it."""

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.features.extraction import DecodedImage, decode_entry, steady_process
from lifelong_core.develop.features.sources.entry import Entry, ImageSource
from lifelong_core.develop.features.sources.limits import DEFAULT_LIMITS, Limits
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.runtime.files import reserve
from lifelong_core.values.preprocessing import CentreCrop, Preprocessing

_MOST_DECODERS = 16
_PIXELS, _INDEX = "pixels.npy", "pixels.json"


@dataclass(frozen=True, eq=False)
class PixelCache:
    """Images of one size before normalisation.

    Attributes:
        pixels: (N, H, W, C) on the scale 0..255: uint8, or float32 where a source has more than 8 bits. A memory map.
        digests: N, of the pixels of each image.
        problems: why images could not be read, by position; their pixels are zero.
    """

    pixels: NDArray[np.uint8] | NDArray[np.float32]
    digests: tuple[str, ...]
    problems: dict[int, str]


def outer_preprocessing(preprocessing: Preprocessing) -> Preprocessing:
    """The preprocessing without normalisation, and with a larger crop that leaves room for random crops.

    The margin is a multiple of 4 pixels, so that the centre crop of the larger crop is that of the whole image.
    """
    resize, crop = preprocessing.resize, preprocessing.centre_crop
    if resize is None or crop is None:
        outer = crop
    else:
        height = crop.height + 4 * ((resize.height - crop.height) // 4)
        width = crop.width + 4 * ((resize.width - crop.width) // 4)
        outer = CentreCrop(height=height, width=width)
    channels = preprocessing.channels
    return preprocessing.model_copy(
        update={
            "centre_crop": outer,
            "mean": (0.0,) * channels,
            "standard_deviation": (1.0,) * channels,
            "layout": "NHWC",
        }
    )


def cache_pixels(
    source: ImageSource,
    entries: Sequence[Entry],
    preprocessing: Preprocessing,
    folder: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    most_problems: int | None = None,
    on_image: Callable[[int], None] = lambda _: None,
    check_space: Callable[[int], None] = lambda _: None,
) -> PixelCache:
    """Decode images into a file of the folder; a whole file of the same images is used again.

    Images are the same if their names, sizes and preprocessing are: a resumed training goes on with the images of its
    start, also where files were overwritten meanwhile.

    Args:
        source: of the images.
        entries: N images of the source.
        preprocessing: from `outer_preprocessing`.
        folder: of one training; made if missing.
        limits: of each image.
        most_problems: with more unreadable images, the others are not decoded; None: they are.
        on_image: called with the number of decoded images.
        check_space: called with the size of the file in bytes before it is written; raises to refuse it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = _key(entries, preprocessing)
    cached = _reopen(folder, key)
    if cached is not None:
        on_image(len(entries))
        return cached
    for dtype in (np.dtype(np.uint8), np.dtype(np.float32)):
        written = _write(
            source, entries, preprocessing, folder, dtype, limits, most_problems, on_image, check_space
        )
        if written is not None:
            digests, problems = written
            index = {"key": key, "digests": digests, "problems": problems}
            (folder / _INDEX).write_text(json.dumps(index))
            return PixelCache(_opened(folder), tuple(digests), problems)
    raise TypeError("float32 holds every image")


def _write(
    source: ImageSource,
    entries: Sequence[Entry],
    preprocessing: Preprocessing,
    folder: Path,
    dtype: np.dtype[Any],
    limits: Limits,
    most_problems: int | None,
    on_image: Callable[[int], None],
    check_space: Callable[[int], None],
) -> tuple[list[str], dict[int, str]] | None:
    """Write all images; None: one has more than 8 bits and the type has not."""
    places = {entry: position for position, entry in enumerate(entries)}
    digests, problems = [""] * len(entries), dict[int, str]()
    pixels: NDArray[Any] | None = None
    for done, image in enumerate(_decoded(source, entries, preprocessing, limits), 1):
        position = places[image.entry]
        on_image(done)
        if image.pixels is None:
            problems[position] = image.problem
            if most_problems is not None and len(problems) > most_problems:
                break
            continue
        values = image.pixels * np.float32(255)
        if dtype == np.uint8:
            rounded = np.rint(values)
            if not np.allclose(values, rounded, atol=1e-3):
                return None
            values = rounded
        if pixels is None:
            pixels = _created(folder / _PIXELS, dtype, (len(entries), *values.shape), check_space)
        pixels[position] = values
        digests[position] = _digest(pixels[position])
    if pixels is None:
        np.save(folder / _PIXELS, np.zeros((len(entries), 1, 1, preprocessing.channels), dtype))
    else:
        pixels.flush()  # type: ignore[attr-defined]
    return digests, problems


def _created(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], check_space: Callable[[int], None]
) -> NDArray[Any]:
    path.unlink(missing_ok=True)
    check_space(math.prod(shape) * dtype.itemsize)
    pixels = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    with path.open("r+b") as file:
        reserve(file, path.stat().st_size)
    return pixels


def _decoded(
    source: ImageSource, entries: Sequence[Entry], preprocessing: Preprocessing, limits: Limits
) -> Iterator[DecodedImage]:
    """Decode in threads; a few images per thread are held at once."""
    decoders = min(_MOST_DECODERS, usable_cores())
    running: deque[Future[DecodedImage]] = deque()
    with steady_process(), ThreadPoolExecutor(decoders, thread_name_prefix="decoder") as pool:
        for opened in source.read(entries):
            running.append(pool.submit(decode_entry, opened, preprocessing, limits))
            if len(running) >= 2 * decoders:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _key(entries: Sequence[Entry], preprocessing: Preprocessing) -> str:
    digest = hashlib.sha256(preprocessing.model_dump_json().encode())
    for entry in entries:
        digest.update(f"\n{entry.name} {entry.size}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _digest(pixels: NDArray[Any]) -> str:
    return hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest()


def _opened(folder: Path) -> NDArray[Any]:
    return np.load(folder / _PIXELS, mmap_mode="r")


def _reopen(folder: Path, key: str) -> PixelCache | None:
    """The cache of an earlier attempt; None: there is none, it is of other images, or it is damaged."""
    try:
        index = json.loads((folder / _INDEX).read_text())
        pixels = _opened(folder)
        if index["key"] != key or len(pixels) != len(index["digests"]):
            return None
        problems = {int(position): str(text) for position, text in index["problems"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    digests = tuple(index["digests"])
    whole = all(
        position in problems or _digest(pixels[position]) == digests[position]
        for position in range(len(digests))
    )
    return PixelCache(pixels, digests, problems) if whole else None
