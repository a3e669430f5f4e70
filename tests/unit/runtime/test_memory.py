"""Freed memory is returned to the system."""

import ctypes
import sys

import psutil
import pytest

from lifelong_core.runtime.memory import give_back_free_memory

BLOCK = 4096
BLOCKS = 8192


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_free_memory_goes_back() -> None:
    # Blocks of a size that only the C library's own allocator handles, and one at the end that keeps them in its heap.
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(BLOCK) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    last = libc.malloc(BLOCK)
    for block in blocks:
        libc.free(block)
    kept = psutil.Process().memory_info().rss
    give_back_free_memory()
    assert kept - psutil.Process().memory_info().rss > BLOCK * BLOCKS / 2
    libc.free(last)
