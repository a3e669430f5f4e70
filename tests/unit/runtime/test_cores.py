"""Quotas of control groups, read from files as Linux writes them."""

import os
from pathlib import Path, PurePosixPath

import pytest

from lifelong_core.runtime import cores
from lifelong_core.runtime.cores import (
    Hierarchy,
    group_folders,
    limited_cores,
    parse_group,
    parse_maximum,
    parse_mounts,
    read_quotas,
    usable_cores,
)

UNIFIED = "30 23 0:26 / {folder} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
CPU = "33 31 0:30 {root} {folder} rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
OTHERS = (
    "23 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
)


def process(folder: Path, *, mounts: str, groups: str) -> Path:
    """A folder like /proc/self."""
    folder.mkdir()
    (folder / "mountinfo").write_text(mounts)
    (folder / "cgroup").write_text(groups)
    return folder


def limit(group: Path, quota: str, period: int = 100_000, *, is_unified: bool = True) -> None:
    group.mkdir(parents=True, exist_ok=True)
    if is_unified:
        (group / "cpu.max").write_text(f"{quota} {period}\n")
    else:
        (group / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (group / "cpu.cfs_period_us").write_text(f"{period}\n")


def test_a_group_and_all_groups_above_it_limit_a_process(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    limit(mount / "machine" / "pod" / "container", "max")
    limit(mount / "machine" / "pod", "150000")
    limit(mount / "machine", "400000", 50_000)
    limit(mount / "machine" / "sibling", "10000")
    proc = process(
        tmp_path / "self", mounts=OTHERS + UNIFIED.format(folder=mount), groups="0::/machine/pod/container\n"
    )
    assert read_quotas(proc) == [1.5, 8.0]


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    limit(tmp_path / "mount", "300000")
    proc = process(
        tmp_path / "self", mounts=UNIFIED.format(folder=tmp_path / "mount"), groups="0::/../../else\n"
    )
    assert read_quotas(proc) == [3.0]


def test_version_1_has_two_files_and_its_own_mount(tmp_path: Path) -> None:
    mount = tmp_path / "cpu"
    limit(mount, "250000", is_unified=False)
    limit(mount / "job", "-1", is_unified=False)
    groups = "9:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/abc/job\n0::/\n"
    mounts = OTHERS + CPU.format(root="/docker/abc", folder=mount)
    assert read_quotas(process(tmp_path / "self", mounts=mounts, groups=groups)) == [2.5]


def test_unreadable_files_limit_nothing(tmp_path: Path) -> None:
    assert read_quotas(tmp_path / "nothing") == []
    mount = tmp_path / "mount"
    limit(mount / "group", "many")
    proc = process(tmp_path / "self", mounts=f"a line\n{UNIFIED.format(folder=mount)}", groups="0::/group\n")
    assert read_quotas(proc) == []


def test_mounts_of_other_kinds_are_left_out() -> None:
    text = (
        OTHERS + UNIFIED.format(folder="/sys/fs/cgroup") + CPU.format(root="/a", folder="/sys/fs/cgroup/cpu")
    )
    assert parse_mounts(text) == [
        Hierarchy(Path("/sys/fs/cgroup"), PurePosixPath("/"), is_unified=True),
        Hierarchy(Path("/sys/fs/cgroup/cpu"), PurePosixPath("/a"), is_unified=False),
    ]


def test_the_group_is_that_of_its_hierarchy() -> None:
    groups = "4:cpuacct,cpu:/one\n1:name=systemd:/two\n0::/three:four\n"
    assert parse_group(groups, is_unified=False) == PurePosixPath("/one")
    assert parse_group(groups, is_unified=True) == PurePosixPath("/three:four")
    assert parse_group("", is_unified=True) == PurePosixPath("/")


def test_groups_outside_of_the_mount_have_the_folder_of_the_mount() -> None:
    hierarchy = Hierarchy(Path("/mount"), PurePosixPath("/docker/abc"), is_unified=False)
    assert group_folders(hierarchy, PurePosixPath("/docker/abc/job")) == [Path("/mount/job"), Path("/mount")]
    assert group_folders(hierarchy, PurePosixPath("/other")) == [Path("/mount")]


@pytest.mark.parametrize(
    ("text", "expected"), [("50000 100000", [0.5]), ("max 100000", []), ("0 100000", [])]
)
def test_the_maximum_of_version_2(text: str, expected: list[float]) -> None:
    assert list(parse_maximum(text)) == expected


@pytest.mark.parametrize(("quotas", "expected"), [([], 4), ([9.0], 4), ([3.99], 3), ([0.2, 2.0], 1)])
def test_quotas_are_rounded_down_to_at_least_one(quotas: list[float], expected: int) -> None:
    assert limited_cores(4, quotas) == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinities")
def test_this_process_uses_the_cores_of_its_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.sched_getaffinity(0)
    assert 1 <= usable_cores() <= len(before)
    monkeypatch.setattr(cores, "read_quotas", list)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    monkeypatch.setattr(cores, "read_quotas", lambda: [1.0])
    assert usable_cores() == 1
