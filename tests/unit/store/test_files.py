"""Files are complete or absent."""

import os
import stat
from pathlib import Path

import pytest

from lifelong_core.store.files import replace_file, write_whole


def test_a_file_takes_the_place_of_another(tmp_path: Path):
    file = tmp_path / "some" / "folder" / "file"
    for content in (b"one", b"another"):
        write_whole(file, content, mode=0o600)
        assert file.read_bytes() == content
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert list(file.parent.iterdir()) == [file]


def test_what_fails_leaves_what_was_there(tmp_path: Path):
    def write_half_of_it() -> None:
        with replace_file(file) as draft:
            draft.write_bytes(b"half")
            raise OSError("no room")

    file = tmp_path / "file"
    write_whole(file, b"whole")
    with pytest.raises(OSError, match="no room"):
        write_half_of_it()
    assert file.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("place", ["file", "new/folder/file"])
def test_file_and_folders_are_on_the_disk_before_it_counts(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
):
    seen: list[tuple[str, bool]] = []
    settle = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(
            ("draft" if path.name.startswith("file.") else str(path.relative_to(tmp_path)), file.exists())
        )
        settle(descriptor)

    file = tmp_path / place
    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(file, b"content")
    made = {"file": [], "new/folder/file": [("new", False), (".", False)]}[place]
    assert seen == [*made, ("draft", False), (str(file.parent.relative_to(tmp_path)), True)]
