"""`python -m tests.soak.leaking_monitor`: a monitor that leaks two megabytes each second, as a positive control."""

import os
import sys
import threading
import time

from lifelong_monitor.__main__ import main


def _leak() -> None:
    kept: list[bytes] = []
    while True:
        kept.append(os.urandom(2_000_000))
        time.sleep(1)


if __name__ == "__main__":
    threading.Thread(target=_leak, daemon=True).start()
    sys.exit(main())
