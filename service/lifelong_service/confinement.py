"""Limits that a process sets on itself before it reads data of a client. Linux only.

They cannot be undone, except those of `limit` that may be lifted.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_LOAD, _IF_EQUAL, _IF_ABOVE, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_X32_CALLS = 0x40000000

# In this order: socket, connect, execve, execveat, ptrace, kill, process_vm_readv, process_vm_writev, io_uring_setup.
_CALLS: Final = {
    "x86_64": (0xC000003E, 317, (41, 42, 59, 322, 101, 62, 310, 311, 425)),
    "aarch64": (0xC00000B7, 277, (198, 203, 221, 281, 117, 129, 270, 271, 425)),
}
"""By machine: the kernel's name of its system calls, the number of `seccomp`, and those of the refused calls."""


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("value", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends, and lower its priority."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.nice(5)


def refuse_calls() -> str | None:
    """Let the kernel refuse sockets, new programs and access to other processes, in all threads.

    Returns:
        Reason why the kernel cannot refuse them; None: it does.
    """
    machine = platform.machine()
    if machine not in _CALLS:
        return f"no filter of system calls is known for {machine}"
    architecture, seccomp, refused = _CALLS[machine]
    program = [_Instruction(_LOAD, 0, 0, 4), _Instruction(_IF_EQUAL, 1, 0, architecture)]
    program += [_Instruction(_RETURN, 0, 0, _REFUSE), _Instruction(_LOAD, 0, 0, 0)]
    program += [_Instruction(_IF_ABOVE, 0, 1, _X32_CALLS), _Instruction(_RETURN, 0, 0, _REFUSE)]
    for number in refused:
        program += [_Instruction(_IF_EQUAL, 0, 1, number), _Instruction(_RETURN, 0, 0, _REFUSE)]
    program.append(_Instruction(_RETURN, 0, 0, _ALLOW))
    code = (_Instruction * len(program))(*program)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return os.strerror(ctypes.get_errno())
    if libc.syscall(seccomp, _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(_Program(len(program), code))) != 0:
        return os.strerror(ctypes.get_errno())
    return None


def limit(kind: int, most: int, *, may_be_lifted: bool = False) -> None:
    """Set a limit of `resource`, or keep the hard one where that is lower; `lift` takes back one that may be lifted."""
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, hard if may_be_lifted else most))


def lift(kind: int) -> None:
    """Take back a limit of `resource` that may be lifted."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (hard, hard))


def limit_memory(growth: int) -> None:
    """Limit the growth of this process' address space to this many bytes."""
    limit(resource.RLIMIT_AS, address_space() + growth)


def address_space() -> int:
    """Return the size of this process' address space in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123 - a pseudo file
        return int(next(line.split()[1] for line in file if line.startswith("VmSize"))) * 1024
