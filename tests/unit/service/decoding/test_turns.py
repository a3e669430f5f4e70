"""Turns between processes: one after the other, also when a holder dies; none where the disk cannot be used."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lifelong_core.values.errors import UnavailableError
from lifelong_service.decoding.process import Turns

HOLD = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from lifelong_service.decoding.process import Turns\n"
    "with Turns(Path(sys.argv[1]), number=1).turn(0):\n"
    "    print('has it', flush=True)\n"
    "    time.sleep(60)\n"
)


def test_so_many_at_once_and_no_more(tmp_path: Path) -> None:
    turns = [Turns(tmp_path, number=2) for _ in range(3)]
    with turns[0].turn(0), turns[1].turn(0):
        with pytest.raises(UnavailableError) as refused, turns[2].turn(0):
            pass
        assert refused.value.field == "image"
    with turns[2].turn(0), turns[0].turn(0):
        pass


def test_the_next_one_has_it_as_soon_as_it_is_free(tmp_path: Path) -> None:
    order: list[str] = []
    first = Turns(tmp_path, number=1)

    def wait() -> None:
        with Turns(tmp_path, number=1).turn(30):
            order.append("second")

    with first.turn(0):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_one_that_comes_again_lets_others_go_first(tmp_path: Path) -> None:
    order: list[str] = []
    first, second = Turns(tmp_path, number=1), Turns(tmp_path, number=1)

    def wait() -> None:
        with second.turn(30):
            order.append("second")

    for _ in range(5):
        with first.turn(30):
            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(0.1)
        with first.turn(30):
            order.append("first")
        thread.join()
    assert order == ["second", "first"] * 5


def test_the_turn_of_a_process_that_dies_is_over(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"has it\n"
    with pytest.raises(UnavailableError), Turns(tmp_path, number=1).turn(0):
        pass
    holder.kill()
    holder.communicate()
    with Turns(tmp_path, number=1).turn(0):
        pass


def test_a_folder_that_cannot_be_used_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    turns = Turns(tmp_path / "file", number=1)
    with turns.turn(0), turns.turn(0):
        pass
