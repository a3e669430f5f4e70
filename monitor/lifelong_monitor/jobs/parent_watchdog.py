"""How a job's subprocess knows that its runner is there: a pipe on which the runner says how long the job is held.

It says so whenever the claim of the job is renewed. The end of the pipe means that the runner was killed, silence that
it hangs, or has lost the job.
"""

import os
import select
import struct
import threading
import time

HOLD = struct.Struct("<d")
"""Seconds from now on; so short that a pipe gives it whole or not at all."""
ABANDONED = 75
"""Exit status of a subprocess whose runner was gone, or silent for too long."""
_FIRST_WORD_SECONDS = 60.0


def end_with_runner() -> None:
    """Watch standard input, and end this process at once when no monitor holds its job.

    Another runner begins the job of one that was killed or hangs anew, and must not have company.
    """

    def watch() -> None:
        # Nothing is known before the runner's first word.
        until = time.monotonic() + _FIRST_WORD_SECONDS
        while select.select([0], [], [], max(0.0, until - time.monotonic()))[0]:
            word = os.read(0, HOLD.size)
            if not word:
                break
            until = time.monotonic() + HOLD.unpack(word)[0]
        os._exit(ABANDONED)

    threading.Thread(target=watch, name="runner", daemon=True).start()
