"""Every kind of source lists the same images, and gives their content back."""

import gzip
import io
import json
import os
import subprocess
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from webdataset.writer import TarWriter

from lifelong_core.develop.features.sources.entry import Entry, ImageSource, printable
from lifelong_core.develop.features.sources.limits import Limits
from lifelong_core.develop.features.sources.opening import open_images
from lifelong_core.values.errors import InvalidInputError, LifelongError, PayloadTooLargeError
from tests.unit.develop.features.drawn import draw_images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    draw_images(folder, 6, classes=("ill", "well"))
    (folder / "notes.txt").write_text("no image")
    (folder / "well" / ".hidden.png").write_text("hidden")
    return folder


def pack_tar(folder: Path, file: Path, mode: str = "w") -> Path:
    with tarfile.open(file, mode) as archive:  # type: ignore[call-overload]
        for path in sorted(folder.rglob("*"), reverse=True):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False)
    return file


def pack_zip(folder: Path, file: Path) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder).as_posix())
    return file


def write_table(folder: Path, file: Path) -> Path:
    rows = [f"{path},{path.parent.name}" for path in sorted(folder.rglob("0*.png"))]
    file.write_text("\ufeff" + "\n".join(["path,label", *rows]) + "\n", encoding="utf-8")
    return file


PACKERS: dict[str, Callable[[Path, Path], Path]] = {
    "folder": lambda folder, _file: folder,
    "tar": lambda folder, file: pack_tar(folder, file.with_suffix(".tar")),
    "tar.gz": lambda folder, file: pack_tar(folder, file.with_suffix(".tar.gz"), "w:gz"),
    "zip": lambda folder, file: pack_zip(folder, file.with_suffix(".zip")),
    "csv": lambda folder, file: write_table(folder, file.with_suffix(".csv")),
}


def listed(source: ImageSource) -> list[Entry]:
    return sorted((entry for entry in source.entries() if entry is not None), key=lambda entry: entry.name)


def contents(source: ImageSource, entries: Sequence[Entry]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry, file in source.read(entries):
        assert not isinstance(file, LifelongError), file
        with file:
            found[entry.path] = file.read()
    return found


@pytest.mark.parametrize("packed", PACKERS)
def test_images_and_labels_are_found(folder: Path, tmp_path: Path, packed: str) -> None:
    source = open_images(PACKERS[packed](folder, tmp_path / "packed"))
    entries = listed(source)
    assert [(Path(entry.path).name, entry.label) for entry in entries] == [
        ("0000.png", "ill"),
        ("0002.png", "ill"),
        ("0004.png", "ill"),
        ("0001.png", "well"),
        ("0003.png", "well"),
        ("0005.png", "well"),
    ]
    wanted = entries[1:5:2]
    for path, content in contents(source, wanted).items():
        assert content == (folder / Path(path).parent.name / Path(path).name).read_bytes()
    if packed != "csv":
        assert sum(entry is None for entry in source.entries()) == 2


@pytest.mark.parametrize("packed", PACKERS)
def test_labels_can_be_ignored(folder: Path, tmp_path: Path, packed: str) -> None:
    source = open_images(PACKERS[packed](folder, tmp_path / "packed"), labelled=False)
    assert {entry.label for entry in listed(source)} == {None}


def test_shards_of_webdataset_are_one_source(folder: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    for shard in range(2):
        with TarWriter(str(shards / f"train-{shard}.tar")) as writer:
            for key in range(3):
                image = (folder / "ill" / "0000.png").read_bytes()
                writer.write({"__key__": f"{shard}{key}", "png": image, "cls": key % 2})
    source = open_images(shards)
    assert [(entry.path, entry.label) for entry in listed(source)] == [
        (f"train-{shard}.tar:{shard}{key}.png", str(key % 2)) for shard in range(2) for key in range(3)
    ]
    assert len(contents(source, listed(source)[2:5])) == 3


@pytest.mark.parametrize("document", [{"label": "ill", "age": 5}, {"cls": 3}])
def test_labels_of_webdataset_can_be_json(folder: Path, tmp_path: Path, document: dict[str, Any]) -> None:
    file = tmp_path / "shard.tar"
    with TarWriter(str(file)) as writer:
        writer.write(
            {"__key__": "a", "json": json.dumps(document), "png": (folder / "ill" / "0000.png").read_bytes()}
        )
    assert [entry.label for entry in listed(open_images(file))] == [str(next(iter(document.values())))]


def test_several_paths_are_one_source(folder: Path, tmp_path: Path) -> None:
    source = open_images(folder / "ill", pack_zip(folder, tmp_path / "more.zip"))
    names = [entry.name for entry in listed(source)]
    assert names[:2] == ["ill:0000.png", "ill:0002.png"]
    assert len(names) == 9
    assert len(contents(source, listed(source))) == 9


def test_a_path_that_leads_out_is_passed_over(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "packed.tar"
    image = (folder / "ill" / "0000.png").read_bytes()
    with tarfile.open(file, "w") as archive:
        member = tarfile.TarInfo("../../escaped.png")
        member.size = len(image)
        archive.addfile(member, io.BytesIO(image))
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    before = sorted(tmp_path.rglob("*"))
    source = open_images(file)
    assert list(source.entries()) == [None, None]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("packed", ["folder", "csv"])
def test_files_outside_the_allowed_folder_are_not_opened(folder: Path, tmp_path: Path, packed: str) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "link.png").symlink_to(secret)
    (allowed / "t.csv").write_text("path\n../secret.png\nlink.png\n")
    source = open_images(allowed if packed == "folder" else allowed / "t.csv", within=allowed)
    opened = list(source.read(listed(source)))
    assert opened
    assert all(isinstance(file, InvalidInputError) for _, file in opened)
    with pytest.raises(InvalidInputError, match="outside"):
        open_images(folder, within=allowed)


def test_a_missing_file_of_a_table_is_noted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,label\nmissing.png,ill\n")
    source = open_images(tmp_path / "t.csv")
    ((entry, problem),) = source.read(listed(source))
    assert (entry.path, entry.label) == ("missing.png", "ill")
    assert isinstance(problem, InvalidInputError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"file,label\na.png,x\n", "no column path"),
        (b"path,label\n\n,x\n", "line 3"),
        (b"path\n\xff\xfe\n", "UTF-8"),
    ],
    ids=["column", "path", "encoding"],
)
def test_other_tables_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        list(open_images(tmp_path / "t.csv").entries())


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.tar", "pipe.zip", "x" * 300])
def test_a_path_that_is_no_regular_file_is_refused(tmp_path: Path, name: str) -> None:
    if name.startswith("pipe"):
        os.mkfifo(tmp_path / name)  # to open it would wait without end
    with pytest.raises(InvalidInputError):
        open_images(tmp_path / name)


def test_unusual_files_of_a_table_are_noted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "t.csv").write_text("path\npipe.png\nloop.png\nnull\0.png\n" + "x" * 300 + ".png\n")
    source = open_images(tmp_path / "t.csv", within=tmp_path)
    opened = [file for _, file in source.read(listed(source))]
    assert len(opened) == 4
    assert all(isinstance(file, InvalidInputError) for file in opened)


def test_one_unusual_file_does_not_spoil_a_folder(folder: Path) -> None:
    (folder / "ill" / "loop.png").symlink_to("loop.png")
    os.mkfifo(folder / "ill" / "pipe.png")
    source = open_images(folder)
    bad = [entry for entry in listed(source) if entry.path == "ill/loop.png"]
    ((_, problem),) = source.read(bad)
    assert isinstance(problem, InvalidInputError)
    assert not any("pipe" in entry.path for entry in listed(source))


def test_folders_may_be_nested_deeply(tmp_path: Path) -> None:
    deepest = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("a", dir_fd=deepest)
        below = os.open("a", os.O_RDONLY, dir_fd=deepest)
        os.close(deepest)
        deepest = below
    os.close(os.open("0.png", os.O_CREAT, dir_fd=deepest))
    os.close(deepest)
    try:
        assert len(listed(open_images(tmp_path))) == 1
    finally:  # shutil, with which pytest cleans up, cannot
        subprocess.run(["rm", "-rf", str(tmp_path / "a")], check=True)


def test_names_that_are_no_utf8_give_labels_that_are(tmp_path: Path) -> None:
    ill = Path(os.fsdecode(os.fsencode(tmp_path) + b"/images/\xff"))
    draw_images(ill, 1)
    (entry,) = listed(open_images(tmp_path / "images"))
    assert entry.label == "\\udcff"
    assert printable(entry.name) == "\\udcff/0000.png"


def test_names_that_are_commands_to_a_terminal_are_escaped() -> None:
    assert printable("a\x1b[2J\n\u202e.png") == r"a\x1b[2J\n\u202e.png"
    assert printable("ü 1.png") == "ü 1.png"


def test_a_label_of_webdataset_that_is_a_json_bomb_is_ignored(tmp_path: Path) -> None:
    files = {"a.png": b"", "a.json": b"[" * 60_000, "b.png": b"", "b.json": b'{"label": "\\ud800"}'}
    write_tar(tmp_path / "t.tar", files)
    assert [entry.label for entry in listed(open_images(tmp_path / "t.tar"))] == [None, "\\ud800"]


def write_tar(path: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("size", [-1, -512, -1024])
def test_a_negative_size_in_a_tar_file_is_refused(tmp_path: Path, size: int) -> None:
    """tarfile goes back by the size, here to the header before, and so without end."""
    write_tar(tmp_path / "t.tar", {"a.png": b"image"})
    header = bytearray(tarfile.TarInfo("b.png").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" + (256**11 + size).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "t.tar").write_bytes((tmp_path / "t.tar").read_bytes()[:1024] + header + bytes(2048))
    with pytest.raises(InvalidInputError):
        list(open_images(tmp_path / "t.tar").entries())


@pytest.mark.parametrize(
    "numbers", [{"size": "-512"}, {"GNU.sparse.size": "many"}, {"GNU.sparse.map": "1,2,x"}], ids=str
)
def test_an_extended_header_without_a_number_is_refused(tmp_path: Path, numbers: dict[str, str]) -> None:
    member = tarfile.TarInfo("a.png")
    member.pax_headers = numbers
    header = member.create_pax_header(dict(member.get_info()), "utf-8")
    (tmp_path / "t.tar").write_bytes(header + bytes(1024))
    with pytest.raises(InvalidInputError):
        list(open_images(tmp_path / "t.tar").entries())


@pytest.mark.parametrize("name", ["broken.tar", "broken.tar.gz", "broken.zip"])
def test_broken_archives_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(os.urandom(3000))
    with pytest.raises(InvalidInputError, match="broken"):
        list(open_images(tmp_path / name).entries())


@pytest.mark.parametrize("packed", ["tar", "tar.gz"])
def test_a_truncated_archive_is_refused(folder: Path, tmp_path: Path, packed: str) -> None:
    file = PACKERS[packed](folder, tmp_path / "packed")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(InvalidInputError):
        list(open_images(file).entries())


def test_other_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"")
    for given in ([tmp_path / "a.pdf"], [tmp_path / "none"], [], [tmp_path, tmp_path]):
        with pytest.raises(InvalidInputError):
            open_images(*given)


LIMITS = Limits(file_bytes=1000, ratio=2, free_bytes=20_000)


@pytest.mark.parametrize("packed", ["tar", "zip"])
def test_a_file_above_the_limit_is_not_read(tmp_path: Path, packed: str) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "at.png").write_bytes(os.urandom(1000))
    (folder / "above.png").write_bytes(os.urandom(1001))
    source = open_images(PACKERS[packed](folder, tmp_path / "packed"), limits=LIMITS)
    found = {entry.path: file for entry, file in source.read(listed(source))}
    assert isinstance(found["above.png"], PayloadTooLargeError)
    assert not isinstance(found["at.png"], LifelongError)


@pytest.mark.parametrize("packed", ["tar.gz", "zip"])
@pytest.mark.parametrize(("count", "is_refused"), [(6, False), (40, True)])
def test_decompression_bombs_are_refused(
    tmp_path: Path, packed: str, count: int, *, is_refused: bool
) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for index in range(count):
        (folder / f"{index}.png").write_bytes(bytes(900))
    source = open_images(PACKERS[packed](folder, tmp_path / "packed"), limits=LIMITS)
    if is_refused:
        with pytest.raises(PayloadTooLargeError, match="unpacks to more than"):
            list(source.entries())
    else:
        assert len(listed(source)) == count


def test_a_header_of_a_tar_file_has_a_limit(tmp_path: Path) -> None:
    header = tarfile.TarInfo("bomb.png")
    header.type, header.size = tarfile.XHDTYPE, 2**26
    with gzip.open(tmp_path / "packed.tar.gz", "wb") as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(64):
            file.write(bytes(2**20))
    with pytest.raises(PayloadTooLargeError, match="header"):
        list(open_images(tmp_path / "packed.tar.gz").entries())


def test_memory_does_not_grow_with_a_tar_file(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        file = tmp_path / f"{count}.tar"
        with tarfile.open(file, "w") as archive:
            for index in range(count):
                archive.addfile(tarfile.TarInfo(f"{index}.png"))
        tracemalloc.start()
        assert sum(1 for _ in open_images(file).entries()) == count
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    assert peak(2000) < 2 * peak(200)


def test_an_encrypted_file_of_a_zip_is_noted(folder: Path, tmp_path: Path) -> None:
    file = pack_zip(folder, tmp_path / "packed.zip")
    content = bytearray(file.read_bytes())
    place = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
    while content[place + 46 : place + 54] != b"ill/0000":
        place = content.index(b"PK\x01\x02", place + 1)
    content[place + 8] |= 1
    file.write_bytes(content)
    source = open_images(file)
    found = {entry.path: file for entry, file in source.read(listed(source))}
    assert [path for path, opened in found.items() if isinstance(opened, LifelongError)] == ["ill/0000.png"]
