"""An interrupted demo ends and cleans up, even if the first interruption is lost."""

import signal
import subprocess
import sys

import pytest

INTERRUPTED = """
import os, signal, sys, time
from lifelong.demo.main import interruptible
number = int(sys.argv[1])
try:
    with interruptible():
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        except BaseException:
            print("lost", flush=True)
        time.sleep(60)
finally:
    os.kill(os.getpid(), number)
    time.sleep(1.5)
    print("clean", flush=True)
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_an_interruption_that_is_lost_comes_again_and_cleaning_up_is_not_interrupted(
    number: int, status: int
):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(int(number))], capture_output=True, text=True, timeout=30
    )
    assert done.stdout.split() == ["lost", "clean"]
    assert done.returncode == status
