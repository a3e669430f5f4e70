"""Images as training gets them: bit-equal inputs, decoded once, with warnings about what may be wrong."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lifelong_core.develop.features.sources.entry import Entry
from lifelong_core.develop.features.sources.folder import TableSource
from lifelong_core.develop.features.sources.zip_files import ZipSource
from lifelong_core.develop.training.data.pixel_cache import cache_pixels, outer_preprocessing
from lifelong_core.develop.training.data.prepared import PreparedImages, prepare_images
from lifelong_core.images import decode, preprocess
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_core.values.preprocessing import CentreCrop, Preprocessing, Resize
from tests.unit.develop.features.test_dicom import make_dicom
from tests.unit.develop.training.data.examples import SHARES, MemorySource, drawn, png, source_of

IMAGENET = {"mean": (0.485, 0.456, 0.406), "standard_deviation": (0.229, 0.224, 0.225)}
SMALL = Preprocessing(
    resize=Resize(mode="shortest_edge", height=19, width=19, interpolation="bicubic"),
    centre_crop=CentreCrop(height=13, width=13),
    **IMAGENET,
)
SQUASHED = Preprocessing(resize=Resize(height=16, width=12), **IMAGENET)
GREY = Preprocessing(
    colour="grey",
    resize=Resize(height=12, width=12),
    centre_crop=CentreCrop(height=8, width=8),
    mean=(0.4,),
    standard_deviation=(0.3,),
)


def prepared(source, folder: Path, preprocessing: Preprocessing = GREY, **named) -> PreparedImages:
    return prepare_images(source, preprocessing, shares=SHARES, seed=0, folder=folder, **named)


def served(data: bytes, preprocessing: Preprocessing) -> np.ndarray:
    return preprocess(decode(data, maximum_pixels=10**6, target=preprocessing), preprocessing)


@pytest.mark.parametrize("preprocessing", [SMALL, SQUASHED, GREY])
def test_inputs_are_bit_for_bit_those_of_the_service(tmp_path, preprocessing):
    """Widths and heights of every remainder by four, so that each rounding of the centre crop occurs."""
    files = {
        Entry(f"{at:02}.png", f"class {at % 2}"): png(drawn(at, (20 + at % 5, 20 + at // 5, 3)))
        for at in range(40)
    }
    images = prepared(MemorySource(files), tmp_path, preprocessing)
    inputs = images.inputs(np.arange(40))
    assert images.input_size == inputs.shape[-2:]
    for at, data in enumerate(files.values()):
        assert np.array_equal(inputs[at], served(data, preprocessing))


def test_sixteen_bits_are_kept(tmp_path):
    pixels = [np.random.default_rng(at).integers(0, 65536, (15, 15), dtype=np.uint16) for at in range(40)]
    files = {Entry(f"{at:02}.png", f"class {at % 2}"): png(one) for at, one in enumerate(pixels)}
    images = prepared(MemorySource(files), tmp_path)
    inputs = images.inputs(np.arange(40))
    expected = np.array([served(data, GREY) for data in files.values()])
    assert np.array_equal(inputs, expected)
    assert len(np.unique(inputs)) > 256
    assert images.pixels(np.arange(3)).float().max() > 200


def test_pixels_hold_the_crop_of_the_input_in_their_centre(tmp_path):
    images = prepared(source_of(40), tmp_path, SMALL)
    pixels = images.pixels(np.array([3, 1])).numpy()
    assert (pixels.dtype, pixels.shape) == (np.uint8, (2, 3, 17, 17))
    mean, deviation = (np.array(values, dtype=np.float32).reshape(3, 1, 1) for values in IMAGENET.values())
    scaled = (pixels[:, :, 2:15, 2:15].astype(np.float32) / np.float32(255) - mean) / deviation
    assert np.array_equal(scaled, images.inputs(np.array([3, 1])))


def test_equal_data_have_equal_digests_and_splits(tmp_path):
    first, second = (prepared(source_of(40), tmp_path / name) for name in "ab")
    assert first.digest == second.digest
    assert all(np.array_equal(first.splits[name], second.splits[name]) for name in SHARES)
    changed = source_of(40)
    changed.files[next(iter(changed.files))] = png(drawn(999))
    assert prepared(changed, tmp_path / "c").digest != first.digest


def test_facts_count_images_classes_and_groups(tmp_path):
    images = prepared(source_of(80, group=[f"patient {at // 2}" for at in range(80)]), tmp_path)
    assert images.groups is not None
    facts = images.facts["training"]
    assert (facts.images, facts.groups, facts.counts) == (48, 24, (24, 24))
    assert prepared(source_of(40), tmp_path / "without").facts["test"].groups is None


def test_decoded_images_are_used_again(tmp_path):
    source = source_of(40)
    first = prepared(source, tmp_path)
    assert source.opened == 40
    told = []
    second = prepared(source, tmp_path, on_image=lambda done, of: told.append((done, of)))
    assert source.opened == 40
    assert told == [(40, 40)]
    assert second.digest == first.digest
    assert np.array_equal(first.inputs(np.arange(40)), second.inputs(np.arange(40)))


def test_a_damaged_file_is_decoded_anew(tmp_path):
    source = source_of(40)
    first = prepared(source, tmp_path)
    expected = first.inputs(np.arange(40))
    data = bytearray((tmp_path / "pixels.npy").read_bytes())
    data[-5] ^= 1
    (tmp_path / "pixels.npy").write_bytes(data)
    assert np.array_equal(prepared(source, tmp_path).inputs(np.arange(40)), expected)
    assert source.opened == 80
    (tmp_path / "pixels.npy").write_bytes(data[:200])
    prepared(source, tmp_path)
    (tmp_path / "pixels.json").write_text("{")
    prepared(source, tmp_path)
    assert source.opened == 160


@pytest.mark.parametrize("change", ["more images", "another size", "other preprocessing"])
def test_other_images_are_not_taken_for_the_decoded_ones(tmp_path, change):
    prepared(source_of(40), tmp_path)
    source = source_of(41 if change == "more images" else 40)
    if change == "another size":
        source.files = {
            (replace(entry, size=entry.size + 1) if at == 7 else entry): data
            for at, (entry, data) in enumerate(source.files.items())
        }
    prepared(source, tmp_path, SMALL if change == "other preprocessing" else GREY)
    assert source.opened == len(source.files)


def test_an_interrupted_attempt_leaves_nothing_that_is_taken_for_whole(tmp_path):
    source = source_of(40)

    def stop(done: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    listed = tuple(source.files)
    with pytest.raises(KeyboardInterrupt):
        cache_pixels(source, listed, outer_preprocessing(GREY), tmp_path, on_image=stop)
    cached = cache_pixels(source, listed, outer_preprocessing(GREY), tmp_path)
    assert all(cached.pixels[at].any() for at in range(40))
    assert json.loads((tmp_path / "pixels.json").read_text())["digests"] == list(cached.digests)


def test_nothing_is_written_for_images_that_take_too_much_space(tmp_path):
    """A small archive with many frames of one pixel, which are all enlarged."""
    scan = make_dicom(np.arange(60_000, dtype=np.uint8).reshape(60_000, 1, 1))
    with zipfile.ZipFile(tmp_path / "scans.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a", "b"):
            archive.writestr(f"{name}/scan.dcm", scan)
    asked: list[int] = []

    def refuse(size: int) -> None:
        asked.append(size)
        raise LifelongError("too much.")

    with pytest.raises(LifelongError, match="too much"):
        prepared(ZipSource(tmp_path / "scans.zip"), tmp_path / "work", SQUASHED, check_space=refuse)
    assert asked == [2 * 60_000 * 16 * 12 * 3]
    assert list((tmp_path / "work").iterdir()) == []


def test_the_space_of_the_images_is_reserved_before_they_are_decoded(tmp_path):
    sizes: list[int] = []

    def look(done: int, _: int) -> None:
        if done == 2:
            sizes.append((tmp_path / "pixels.npy").stat().st_blocks * 512)

    prepared(source_of(400), tmp_path, check_space=sizes.append, on_image=look)
    assert sizes[1] >= sizes[0] == 400 * 12 * 12


def test_decoding_ends_when_too_many_images_are_unreadable(tmp_path):
    source = source_of(1000)
    for entry in list(source.files)[:500]:
        source.files[entry] = b"no image"
    with pytest.raises(InvalidInputError, match="at least 51 of 1000 images cannot be read"):
        prepared(source, tmp_path)
    assert source.opened < 500


def test_unreadable_images_are_left_out_with_a_warning(tmp_path):
    source = source_of(40)
    broken = list(source.files)[7]
    source.files[broken] = b"no image"
    images = prepared(source, tmp_path)
    assert len(images.names) == len(images.labels) == 39
    assert broken.name not in images.names
    assert images.warnings == (
        "1 of 40 images cannot be read: 007.png: this is not an image that can be read.",
    )
    after = images.names.index("008.png")
    assert np.array_equal(images.inputs(np.array([after]))[0], served(png(drawn(8)), GREY))
    assert sorted(np.concatenate(list(images.splits.values())).tolist()) == list(range(39))
    assert prepared(source, tmp_path).warnings == images.warnings


def test_too_many_unreadable_images_are_refused(tmp_path):
    source = source_of(40)
    for entry in list(source.files)[:3]:
        source.files[entry] = b"no image"
    with pytest.raises(InvalidInputError, match=r"3 of 40 images cannot be read: 000\.png"):
        prepared(source, tmp_path)


def test_contradictory_labels_are_warned_of_and_stay_in_one_split(tmp_path):
    source = source_of(40)
    names = list(source.files)
    source.files[names[1]] = source.files[names[0]]
    images = prepared(source, tmp_path)
    assert images.warnings == (
        "Identical images have different classes: 000.png (class 0) = 001.png (class 1).",
    )
    assert any({0, 1} <= set(members.tolist()) for members in images.splits.values())


def test_an_identical_image_in_two_given_splits_is_an_error(tmp_path):
    """The same pixels in another file format are the same image."""
    rows = ["path,label,split"]
    for at in range(16):
        Image.fromarray(drawn(at)).save(tmp_path / f"{at}.png")
        rows.append(f"{at}.png,{'ab'[at % 2]},{tuple(SHARES)[at // 4]}")
    table = tmp_path / "images.csv"
    table.write_text("\n".join(rows))
    images = prepared(TableSource(table), tmp_path / "first")
    assert {name: len(members) for name, members in images.splits.items()} == dict.fromkeys(SHARES, 4)
    table.write_text("\n".join(["sep=;", *rows]).replace(",", ";"))
    assert {
        name: len(members)
        for name, members in prepared(TableSource(table), tmp_path / "excel").splits.items()
    } == (dict.fromkeys(SHARES, 4))
    Image.fromarray(drawn(0)).save(tmp_path / "copy.bmp")
    table.write_text("\n".join([*rows, "copy.bmp,a,test"]))
    with pytest.raises(InvalidInputError, match=r"0\.png \(training\) and copy\.bmp \(test\)"):
        prepared(TableSource(table), tmp_path / "second")


def test_images_of_a_source_task_that_the_target_holds_out_are_named(tmp_path):
    target = prepared(source_of(40), tmp_path / "target")
    names = sorted(
        target.names[at] for split in ("validation", "calibration", "test") for at in target.splits[split]
    )
    shares = {"training": 0.9, "validation": 0.1}
    source = prepare_images(source_of(40), GREY, shares=shares, seed=1, folder=tmp_path / "source")
    said = target.overlap(source)
    assert said is not None
    assert said.startswith(f"{len(names)} images of the source task are identical")
    assert ", ".join(names[:5]) in said
    other = MemorySource({Entry(f"{at}.png", f"class {at % 2}"): png(drawn(100 + at)) for at in range(40)})
    assert target.overlap(prepare_images(other, GREY, shares=shares, seed=1, folder=tmp_path / "b")) is None


def test_a_source_task_needs_no_splits_that_are_not_used(tmp_path):
    named = ["training" if at < 30 else "validation" if at < 38 else "test" for at in range(40)]
    shares = {"training": 0.9, "validation": 0.1}
    images = prepare_images(source_of(40, split=named), GREY, shares=shares, seed=0, folder=tmp_path / "a")
    assert {name: len(members) for name, members in images.splits.items()} == {
        "training": 30,
        "validation": 8,
    }
    with pytest.raises(InvalidInputError, match="calibration split has no image"):
        prepared(source_of(40, split=named), tmp_path / "b")


def test_other_named_splits_of_equal_images_have_another_digest(tmp_path):
    named = [tuple(SHARES)[at // 2 % 4] for at in range(40)]
    images, again, moved = (
        prepared(source_of(40, split=splits), tmp_path / str(at))
        for at, splits in enumerate((named, named, named[2:] + named[:2]))
    )
    assert images.digest == moved.digest
    assert images.splits_digest == again.splits_digest != moved.splits_digest
