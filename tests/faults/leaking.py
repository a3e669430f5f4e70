"""`python -m tests.faults.leaking`: workers leak memory, descriptors and threads: a positive control."""

import os
import sys
import threading
import time
from typing import Any

SERVICE = (sys.executable, "-m", "tests.faults.leaking")
_LEAKING = "tests.faults.leaking:Lifelong"
_BYTES = 500_000
_INTERVAL_SECONDS = 0.1


def _leak() -> None:
    kept: list[bytes] = []
    descriptors: list[int] = []
    while True:
        kept.append(os.urandom(_BYTES))
        descriptors.append(os.open(os.devnull, os.O_RDONLY))
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        time.sleep(_INTERVAL_SECONDS)


def __getattr__(name: str) -> Any:
    """Return the BentoML service, for processes that import it from this module."""
    if name != "Lifelong":
        raise AttributeError(name)
    import bentoml

    from lifelong_service.service import Lifelong

    if bentoml.server_context.worker_index is not None:
        threading.Thread(target=_leak, daemon=True).start()
    return Lifelong


def main() -> None:
    from lifelong_core.configuration.settings import Settings
    from lifelong_service.process.launch import serve

    serve(Settings.load(), _LEAKING)


if __name__ == "__main__":
    main()
