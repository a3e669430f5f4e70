"""Number of processor cores that this process may use: its affinity, and the limits of its control groups."""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Hierarchy:
    """A mounted hierarchy of control groups that can limit processor time.

    Attributes:
        folder: where it is mounted.
        root: the group that is mounted there, which in a container is not the root of the machine.
        is_unified: True for version 2 of control groups, False for the controller `cpu` of version 1.
    """

    folder: Path
    root: PurePosixPath
    is_unified: bool


def usable_cores() -> int:
    """Return the number of cores that this process may use at once, at least 1.

    It is the number of cores of its affinity, or less if its control group, or one above it, has a quota of processor
    time (a container with a CPU limit). Quotas are rounded down: threads beyond a quota are stopped for a part of each
    period.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return limited_cores(affinity, read_quotas())


def limited_cores(cores: int, quotas: Iterable[float]) -> int:
    """Return the whole number of cores, at least 1, that all quotas allow.

    Args:
        cores: number of cores without quotas.
        quotas: cores that each group may use; fractions are possible.

    Examples:
        >>> limited_cores(8, [2.5, 16.0])
        2
        >>> limited_cores(8, [0.5])
        1
    """
    return max(1, math.floor(min([cores, *quotas])))


def read_quotas(process: Path = Path("/proc/self")) -> list[float]:
    """Return the quotas, in cores, of the control groups of a process and of all groups above them.

    Files that are missing or have an unknown content limit nothing, as on systems without control groups.

    Args:
        process: folder of the process in /proc.
    """
    try:
        hierarchies = parse_mounts((process / "mountinfo").read_text(encoding="utf-8", errors="replace"))
        groups = (process / "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    quotas: list[float] = []
    for hierarchy in hierarchies:
        group = parse_group(groups, is_unified=hierarchy.is_unified)
        for folder in group_folders(hierarchy, group):
            with suppress(OSError, ValueError):
                quotas.extend(_read_quota(folder, is_unified=hierarchy.is_unified))
    return quotas


def parse_mounts(mountinfo: str) -> list[Hierarchy]:
    """Return the hierarchies that can limit processor time, from the content of /proc/self/mountinfo."""
    found: list[Hierarchy] = []
    for line in mountinfo.splitlines():
        mount, _, filesystem = line.partition(" - ")
        # id, parent, device, root, mount point, options ... - type, source, options of the file system
        fields, kinds = mount.split(), filesystem.split()
        if len(fields) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2" or (kinds[0] == "cgroup" and "cpu" in kinds[2].split(",")):
            found.append(Hierarchy(Path(fields[4]), PurePosixPath(fields[3]), kinds[0] == "cgroup2"))
    return found


def parse_group(groups: str, *, is_unified: bool) -> PurePosixPath:
    """Return the group of a process in one hierarchy, from the content of /proc/self/cgroup; else the root."""
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        is_this = number == "0" if is_unified else "cpu" in controllers.split(",")
        if is_this:
            return PurePosixPath(path)
    return PurePosixPath("/")


def group_folders(hierarchy: Hierarchy, group: PurePosixPath) -> list[Path]:
    """Return the folders of a group and of all groups above it that are mounted.

    A group outside of the mounted part, as seen from some containers, has only the folder of the mount.
    """
    inside = group.relative_to(hierarchy.root) if group.is_relative_to(hierarchy.root) else PurePosixPath()
    if ".." in group.parts:
        inside = PurePosixPath()
    return [hierarchy.folder / one for one in (inside, *inside.parents)]


def parse_maximum(text: str) -> Iterator[float]:
    """Yield the quota in cores of a file `cpu.max` of version 2: quota and period in microseconds; `max`: none.

    Raises:
        ValueError: the text has another form.

    Examples:
        >>> list(parse_maximum("150000 100000"))
        [1.5]
        >>> list(parse_maximum("max 100000"))
        []
    """
    quota, period = text.split()
    if quota != "max":
        yield from _cores(int(quota), int(period))


def _read_quota(folder: Path, *, is_unified: bool) -> Iterator[float]:
    if is_unified:
        return parse_maximum((folder / "cpu.max").read_text(encoding="utf-8"))
    quota, period = (
        int((folder / name).read_text(encoding="utf-8")) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    )
    return _cores(quota, period)


def _cores(quota: int, period: int) -> Iterator[float]:
    """Version 1 writes -1 for no quota."""
    if quota > 0 and period > 0:
        yield quota / period
