"""Small image files that are costly to decode."""

import struct
import zlib
from collections.abc import Callable
from io import BytesIO

import numpy as np
from PIL import Image


def _encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _png(width: int, height: int, *, before: bytes = b"", bits: int = 1, colour: int = 0) -> bytes:
    """A PNG of zeros, compressed piece by piece, with the chunks `before` between its header and its pixels."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    channels = {0: 1, 2: 3, 3: 1, 6: 4}[colour]
    left = height * (1 + (width * bits * channels + 7) // 8)
    packer, content = zlib.compressobj(9), []
    while left > 0:
        content.append(packer.compress(bytes(min(left, 1 << 20))))
        left -= 1 << 20
    content.append(packer.flush())
    pixels = _chunk(b"IDAT", b"".join(content))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + before + pixels + _chunk(b"IEND", b"")


def progressive_jpeg(edge: int, scans: int) -> bytes:
    """A progressive JPEG with its last scan repeated: each repetition costs a pass over all pixels."""
    # Quality 1 and one grey level: scans of some 75 bytes.
    image = _encoded(Image.new("L", (edge, edge), 128), "JPEG", progressive=True, quality=1)
    begin = image.rindex(b"\xff\xda")
    return image[:-2] + image[begin:-2] * scans + image[-2:]


def elongated_png() -> bytes:
    """A PNG of 50,000,000 x 1 pixels in 6 kB."""
    return _png(50_000_000, 1)


def webp_canvas(edge: int) -> bytes:
    """A WebP of 34 bytes with a large canvas in its header; decoders allocate it when they open the file."""
    size = (edge - 1).to_bytes(3, "little")
    content = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + size + size + b"ANIM"
    return b"RIFF" + struct.pack("<I", len(content)) + content


def rle_bmp(edge: int) -> bytes:
    """A run-length encoded BMP of 1 kB, which Pillow decodes in Python."""
    palette = bytes(1024)
    row = b"".join(bytes([255, 1]) for _ in range(edge // 255)) + b"\0\0"
    body = row * 4 + b"\0\1"
    offset = 54 + len(palette)
    header = struct.pack("<2sIHHI", b"BM", offset + len(body), 0, 0, offset)
    return (
        header
        + struct.pack("<IiiHHIIiiII", 40, edge, edge, 1, 8, 1, len(body), 0, 0, 256, 0)
        + palette
        + body
    )


def png_of_tiny_chunks(count: int) -> bytes:
    """A PNG of tiny metadata chunks, which decoders read one by one."""
    return _png(8, 8, before=_chunk(b"tEXt", b"a\0") * count)


def png_of_tiny_pixel_chunks(count: int) -> bytes:
    """A PNG with empty pixel chunks, which decoders also read one by one."""
    image = _png(8, 8)
    begin = image.index(b"IDAT") - 4
    return image[:begin] + _chunk(b"IDAT", b"") * count + image[begin:]


def png_text_bomb() -> bytes:
    """A PNG with compressed text that inflates to a gigabyte."""
    text = zlib.compress(bytes(64 << 20), 9)
    return _png(8, 8, before=b"".join(_chunk(b"zTXt", b"k%d\0\0" % i + text) for i in range(16)))


def jpeg_of_tiny_segments(count: int) -> bytes:
    """A JPEG of tiny metadata segments, which decoders read one by one."""
    image = _encoded(Image.new("L", (8, 8)), "JPEG")
    return image[:2] + b"\xff\xfe\x00\x02" * count + image[2:]


def exif_directory(entries: int) -> bytes:
    """A JPEG with this number of EXIF entries, in segments of 64 kB."""
    directory = struct.pack("<H", min(entries, 65535)) + b"".join(
        struct.pack("<HHII", 0x9000 + i % 4096, 4, 1, i) for i in range(min(entries, 65535))
    )
    exif = b"II*\0\x08\0\0\0" + directory + bytes(4)
    image = _encoded(Image.new("L", (8, 8)), "JPEG")
    pieces = [exif[i : i + 65000] for i in range(0, len(exif), 65000)]
    segments = b"".join(
        b"\xff\xe1" + struct.pack(">H", len(piece) + 8) + b"Exif\0\0" + piece for piece in pieces
    )
    return image[:2] + segments + image[2:]


def deflated_tiff(edge: int) -> bytes:
    """A TIFF of zeros, compressed."""
    return _encoded(Image.new("RGB", (edge, edge)), "TIFF", compression="tiff_adobe_deflate")


def tiff_of_directories(count: int) -> bytes:
    """A TIFF whose directories form a long chain."""
    entry = struct.pack("<HHII", 256, 3, 1, 8)
    parts, position = [b"II*\0\x08\0\0\0"], 8
    for _ in range(count):
        position += 2 + 12 + 4
        parts.append(struct.pack("<H", 1) + entry + struct.pack("<I", position))
    return b"".join(parts)


def noise_png(edge: int) -> bytes:
    """A valid PNG of incompressible pixels with 16 bits each."""
    noise = np.random.default_rng(0).integers(0, 2**16, (edge, edge), dtype=np.uint16)
    return _encoded(Image.fromarray(noise), "PNG", compress_level=1)


def two_frames() -> bytes:
    """A JPEG with a small and a large frame header: readers disagree on its size."""
    small, large = (_encoded(Image.new("L", (edge, edge)), "JPEG") for edge in (8, 4000))
    frame = large[large.index(b"\xff\xc0") : large.index(b"\xff\xc4")]
    begin = small.index(b"\xff\xc0")
    return small[:begin] + small[begin : small.index(b"\xff\xc4")] + frame + small[small.index(b"\xff\xc4") :]


CORPUS: dict[str, Callable[[], bytes]] = {
    "JPEG of 2,000 scans, 7,000 x 7,000": lambda: progressive_jpeg(7000, 2000),
    "JPEG of 2,000 scans, 4,000 x 4,000": lambda: progressive_jpeg(4000, 2000),
    "JPEG of 46 scans, 4,000 x 4,000": lambda: progressive_jpeg(4000, 40),
    "WebP of 34 bytes, 7,000 x 7,000": lambda: webp_canvas(7000),
    "WebP of 34 bytes, 4,000 x 4,000": lambda: webp_canvas(4000),
    "RLE BMP, 7,000 x 7,000": lambda: rle_bmp(7000),
    "RLE BMP, 4,000 x 4,000": lambda: rle_bmp(4000),
    "PNG of 50,000,000 x 1": elongated_png,
    "PNG of 400,000 x 40": lambda: _png(400_000, 40),
    "PNG of 4,096 x 4,096, one bit": lambda: _png(4096, 4096),
    "PNG of 4,096 x 4,096, RGBA": lambda: _png(4096, 4096, bits=8, colour=6),
    "PNG of 30,000 x 30,000": lambda: _png(30_000, 30_000),
    "PNG of a million chunks": lambda: png_of_tiny_chunks(1_000_000),
    "PNG of 1.5 million pixel chunks": lambda: png_of_tiny_pixel_chunks(1_500_000),
    "PNG of 900 chunks": lambda: png_of_tiny_chunks(900),
    "PNG with a gigabyte of text": png_text_bomb,
    "JPEG of four million segments": lambda: jpeg_of_tiny_segments(4_000_000),
    "JPEG with 65,535 EXIF entries": lambda: exif_directory(65_535),
    "JPEG with two frame headers": two_frames,
    "TIFF of 4,096 x 4,096": lambda: deflated_tiff(4096),
    "TIFF of 7,000 x 7,000": lambda: deflated_tiff(7000),
    "TIFF of a million directories": lambda: tiff_of_directories(1_000_000),
    "PNG of noise, 4,096 x 4,096, 16 bits": lambda: noise_png(4096),
}
"""Images by description."""
