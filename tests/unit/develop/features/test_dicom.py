"""DICOM frames as images; expected values are worked out by hand from part 3 of the standard."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import (
    UID,
    CTImageStorage,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRLittleEndian,
    RLELossless,
    generate_uid,
)

from lifelong_core.develop.features.backbone import Backbone
from lifelong_core.develop.features.dicom import count_frames, decode_dicom, is_dicom
from lifelong_core.develop.features.sources.folder import FolderSource
from lifelong_core.develop.features.task import fingerprint_task
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError

LIMIT = 10_000
RAMP = np.arange(12, dtype=np.uint16).reshape(3, 4) * 100


def make_dicom(pixels: np.ndarray, *, syntax: UID = ExplicitVRLittleEndian, **fields: object) -> bytes:
    """A DICOM file of pixels of shape (rows, columns), (frames, rows, columns) or (rows, columns, 3)."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian if syntax == RLELossless else syntax
    dataset.file_meta.MediaStorageSOPClassUID = CTImageStorage
    dataset.file_meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["test"])
    dataset.SOPClassUID = CTImageStorage
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID
    is_coloured = pixels.shape[-1] == 3
    dataset.Rows, dataset.Columns = pixels.shape[-3:-1] if is_coloured else pixels.shape[-2:]
    if pixels.ndim - is_coloured == 3:
        dataset.NumberOfFrames = len(pixels)
    dataset.SamplesPerPixel = 3 if is_coloured else 1
    if is_coloured:
        dataset.PlanarConfiguration = 0
    dataset.PhotometricInterpretation = "RGB" if is_coloured else "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = pixels.dtype.itemsize * 8
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = int(pixels.dtype.kind == "i")
    dataset.PixelData = pixels.tobytes()
    for name, value in fields.items():
        setattr(dataset, name, value)
    if syntax == RLELossless:
        dataset.compress(RLELossless)
    file = io.BytesIO()
    pydicom.dcmwrite(file, dataset, enforce_file_format=True)
    return file.getvalue()


def shares(content: bytes, frame: int = 0) -> np.ndarray:
    """The decoded pixels on the scale 0..1."""
    return np.asarray(decode_dicom(io.BytesIO(content), frame, maximum_pixels=LIMIT)) / 65535


def test_without_a_window_the_range_is_that_of_the_values() -> None:
    assert shares(make_dicom(RAMP)) == pytest.approx(RAMP / 1100, abs=1e-5)
    assert not shares(make_dicom(np.full((2, 2), 7, dtype=np.uint16))).any()


def test_monochrome1_is_inverted() -> None:
    inverted = make_dicom(RAMP, PhotometricInterpretation="MONOCHROME1")
    assert shares(inverted) == pytest.approx(1 - RAMP / 1100, abs=1e-5)


def test_the_window_is_applied_after_rescaling() -> None:
    content = make_dicom(
        RAMP.astype(np.int16), RescaleSlope=2, RescaleIntercept=-1000, WindowCenter=40, WindowWidth=400
    )
    # Linear function of part 3, C.11.2.1.2.1.
    expected = np.clip((RAMP * 2.0 - 1000 - 39.5) / 399 + 0.5, 0, 1)
    assert shares(content) == pytest.approx(expected, abs=1e-5)


def test_of_several_windows_the_first_is_used() -> None:
    first = make_dicom(RAMP, WindowCenter=[300, 900], WindowWidth=[200, 50])
    assert np.array_equal(shares(first), shares(make_dicom(RAMP, WindowCenter=300, WindowWidth=200)))


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, RLELossless], ids=["plain", "rle"])
def test_each_frame_is_an_image(syntax: UID) -> None:
    content = make_dicom(np.stack([RAMP, RAMP[::-1], RAMP.T.reshape(3, 4)]), syntax=syntax)
    assert count_frames(io.BytesIO(content), len(content)) == 3
    assert shares(content, 1) == pytest.approx(RAMP[::-1] / 1100, abs=1e-5)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        shares(content, 3)


@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, RLELossless], ids=["plain", "rle"])
def test_frames_that_are_not_there_are_no_images(syntax: UID, tmp_path: Path) -> None:
    content = make_dicom(np.stack([RAMP, RAMP]), syntax=syntax).replace(b"IS\2\x002 ", b"IS\6\x00999999")
    assert b"999999" in content
    (tmp_path / "scan.dcm").write_bytes(content)
    assert len(list(FolderSource(tmp_path).entries())) == 1


@pytest.mark.parametrize(("scale", "dtype"), [(1, np.uint8), (257, np.uint16)], ids=["8 bits", "16 bits"])
def test_colours_have_8_bits(scale: int, dtype: type[np.generic]) -> None:
    colours = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10
    content = make_dicom((colours.astype(int) * scale).astype(dtype))
    image = decode_dicom(io.BytesIO(content), 0, maximum_pixels=LIMIT)
    assert image.mode == "RGB"
    assert np.array_equal(np.asarray(image), colours)


def test_palettes_give_colours() -> None:
    table = np.arange(256, dtype=np.uint8)
    palette: dict[str, object] = {"PhotometricInterpretation": "PALETTE COLOR"}
    for name, values in (("Red", table), ("Green", table[::-1]), ("Blue", table * 0)):
        palette[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, 8]
        palette[f"{name}PaletteColorLookupTableData"] = values.tobytes()
    content = make_dicom(np.array([[0, 200]], dtype=np.uint8), syntax=ExplicitVRLittleEndian, **palette)
    image = decode_dicom(io.BytesIO(content), 0, maximum_pixels=LIMIT)
    assert np.asarray(image).tolist() == [[[0, 255, 0], [200, 55, 0]]]


def test_the_limit_of_pixels_is_that_of_the_header() -> None:
    content = make_dicom(RAMP)
    assert decode_dicom(io.BytesIO(content), 0, maximum_pixels=12).size == (4, 3)
    with pytest.raises(PayloadTooLargeError, match="4 x 3"):
        decode_dicom(io.BytesIO(content), 0, maximum_pixels=11)


def test_deflated_files_are_refused() -> None:
    content = make_dicom(RAMP, syntax=DeflatedExplicitVRLittleEndian)
    assert count_frames(io.BytesIO(content), len(content)) == 1
    with pytest.raises(InvalidInputError, match="deflated"):
        shares(content)


@pytest.mark.parametrize("length", [0, 131, 200, 400, 900])
def test_truncated_files_are_refused(length: int) -> None:
    content = make_dicom(np.tile(RAMP, (10, 10)))[:length]
    assert count_frames(io.BytesIO(content), len(content)) == 1
    with pytest.raises(InvalidInputError, match="cannot be read"):
        shares(content)


def test_dicom_is_told_by_its_first_bytes() -> None:
    file = io.BytesIO(make_dicom(RAMP))
    assert is_dicom(file)
    assert file.tell() == 0
    assert not is_dicom(io.BytesIO(b"DICM"))


def write_series(folder: Path, names: Sequence[str]) -> None:
    rng = np.random.default_rng(0)
    for name in names:
        (folder / name).write_bytes(make_dicom(rng.integers(0, 1000, (20, 30)).astype(np.uint16)))


@pytest.mark.parametrize("packed", ["folder", "tar", "zip"])
def test_series_are_fingerprinted(
    tmp_path: Path, extractor: ExtractorReference, backbone: Backbone, packed: str
) -> None:
    import shutil

    series = tmp_path / "series"
    series.mkdir()
    write_series(series, ["a.dcm", "IM000001", "IM000002", "1.2.840.5"])
    cine = np.random.default_rng(1).integers(0, 255, (5, 16, 16)).astype(np.uint8)
    (series / "cine.dcm").write_bytes(make_dicom(cine))
    (series / "LICENSE").write_text("no DICOM")
    images = series if packed == "folder" else Path(shutil.make_archive(str(tmp_path / "s"), packed, series))
    found = fingerprint_task(images, extractor, backbone)
    assert (found.report.images, found.report.read, found.report.passed_over) == (9, 9, 1)
    assert (found.facts.smallest_pixels, found.facts.largest_pixels) == (256, 600)
