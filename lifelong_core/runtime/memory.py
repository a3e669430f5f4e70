"""Memory that this process may use, and memory that it has freed and its allocator keeps."""

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from lifelong_core.runtime.cores import group_folders, parse_group, parse_mounts

_TRIM_THRESHOLD, _NO_MAPPINGS = -1, -4
"""M_TRIM_THRESHOLD and M_MMAP_MAX of glibc's malloc.h"""


def usable_memory(process: Path = Path("/proc/self")) -> int:
    """Bytes of memory of the machine, or less if a control group (version 2) of the process allows less.

    Args:
        process: folder of the process in /proc.
    """
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):
        group = parse_group((process / "cgroup").read_text(errors="replace"), is_unified=True)
        for hierarchy in parse_mounts((process / "mountinfo").read_text(errors="replace")):
            for folder in group_folders(hierarchy, group) if hierarchy.is_unified else ():
                with suppress(OSError, ValueError):  # missing, or "max"
                    found.append(int((folder / "memory.max").read_text()))
    return min(found)


def give_back_free_memory() -> None:
    """Return freed memory to the system; no effect if the C library is not glibc.

    glibc keeps freed memory, separately for every thread. The call takes some milliseconds.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


def keep_free_memory() -> None:
    """Keep freed memory for the next array, for a process with one large task; no effect if the C library is not glibc.

    Otherwise each large array comes from the system, which clears its pages: with 1,000 classes, a fifth of the
    processor time of `adapt`.
    """
    if _trim() is not None:
        library = ctypes.CDLL(None)
        library.mallopt(_NO_MAPPINGS, 0)
        library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library; Windows
        return None
