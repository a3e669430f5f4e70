"""The process that decodes costly images: the same pixels as in the serving process, and all its failures."""

import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from lifelong_core.images import FULL_PIXELS, decode, preprocess
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError, UnavailableError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.decoding import process as module
from lifelong_service.decoding.process import DecodingProcess, Turns
from tests.attacks.images import noise_png
from tests.integration.processes import eventually, lives

LIMIT = 16_777_216
SMALL = Preprocessing.model_validate(
    {
        "resize": {"mode": "shortest_edge", "height": 256, "width": 256},
        "centre_crop": {"height": 224, "width": 224},
    }
)


def encoded(edge: int, kind: str = "JPEG", **options: object) -> bytes:
    """Waves of every direction with some noise."""
    across, down = np.meshgrid(np.linspace(0, 40, edge), np.linspace(0, 25, edge))
    waves = np.stack([np.sin(across), np.cos(down), np.sin(across + down)], axis=2)
    noise = np.random.default_rng(0).normal(size=waves.shape)
    file = BytesIO()
    Image.fromarray((128 + 90 * waves + 8 * noise).clip(0, 255).astype(np.uint8)).save(file, kind, **options)
    return file.getvalue()


def tiff(edge: int) -> bytes:
    file = BytesIO()
    Image.new("L", (edge, edge)).save(file, "TIFF", compression="tiff_adobe_deflate")
    return file.getvalue()


def starting(folder: Path) -> DecodingProcess:
    return DecodingProcess(maximum_pixels=LIMIT, turns=Turns(folder, number=1))


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DecodingProcess]:
    decoding = starting(tmp_path_factory.mktemp("turns"))
    yield decoding
    decoding.close()


def child_of(process: DecodingProcess) -> psutil.Process:
    return psutil.Process(process._process.pid)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP", "BMP"])
def test_gives_the_same_pixels_as_the_serving_process(kind: str, process: DecodingProcess) -> None:
    image = encoded(300, kind)
    here = preprocess(decode(image, maximum_pixels=LIMIT), SMALL)
    np.testing.assert_array_equal(process.decode(image, SMALL), here)


def test_large_jpegs_differ_little_from_a_full_decode(process: DecodingProcess) -> None:
    edge = int(FULL_PIXELS**0.5) + 100
    image = encoded(edge, quality=90)
    full = preprocess(decode(image, maximum_pixels=LIMIT), SMALL)
    assert np.abs(process.decode(image, SMALL) - full).max() * 255 <= 3
    exact = encoded(edge, "PNG")
    np.testing.assert_array_equal(
        process.decode(exact, SMALL), preprocess(decode(exact, maximum_pixels=LIMIT), SMALL)
    )


def test_errors_arrive_as_they_are(process: DecodingProcess) -> None:
    with pytest.raises(InvalidInputError, match="not an image") as caught:
        process.decode(b"hello", SMALL)
    assert caught.value.field == "image"
    with pytest.raises(PayloadTooLargeError, match="at most"):
        process.decode(tiff(5000), SMALL)
    assert process.decode(encoded(50), SMALL).shape == (3, 224, 224)


def test_an_image_that_takes_too_long_ends_the_process_and_not_the_next_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "PROCESSOR_SECONDS", 0.1)
    process = starting(tmp_path)
    try:
        process.decode(encoded(50), SMALL)
        first = child_of(process)
        with pytest.raises(PayloadTooLargeError, match="takes more than"):
            process.decode(noise_png(4000), SMALL)
        assert not lives(first)
        assert process.decode(encoded(50), SMALL).shape == (3, 224, 224)
    finally:
        process.close()


def test_a_process_that_does_not_answer_is_killed(
    process: DecodingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.decode(encoded(50), SMALL)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.5)
    child_of(process).suspend()
    with pytest.raises(UnavailableError, match="busy"):
        process.decode(encoded(50), SMALL)
    monkeypatch.undo()
    assert process.decode(encoded(50), SMALL).shape == (3, 224, 224)


def test_a_decoder_that_crashes_is_the_fault_of_its_image(process: DecodingProcess) -> None:
    process.decode(encoded(50), SMALL)
    child = child_of(process)
    child.suspend()
    crash = threading.Timer(0.3, lambda: (child.send_signal(signal.SIGSEGV), child.resume()))
    crash.start()
    with pytest.raises(InvalidInputError, match="crashes"):
        process.decode(encoded(50), SMALL)
    crash.join()
    assert process.decode(encoded(50), SMALL).shape == (3, 224, 224)


def test_too_little_memory_is_told_to_the_client(process: DecodingProcess) -> None:
    process.decode(encoded(50), SMALL)
    child = child_of(process)
    assert child.rlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    memory = child.memory_info().vms + (20 << 20)
    child.rlimit(resource.RLIMIT_AS, (memory, memory))
    with pytest.raises(PayloadTooLargeError, match="memory"):
        process.decode(tiff(4096), SMALL)
    process.close()


def test_it_outlives_the_thread_of_its_first_image(tmp_path: Path) -> None:
    with closing(starting(tmp_path)) as process:
        thread = threading.Thread(target=process.decode, args=(encoded(50), SMALL))
        thread.start()
        thread.join()
        with pytest.raises(psutil.TimeoutExpired):
            child_of(process).wait(0.5)
        assert process.decode(encoded(50), SMALL).shape == (3, 224, 224)


def test_it_can_write_no_file(process: DecodingProcess) -> None:
    process.decode(encoded(50), SMALL)
    child = child_of(process)
    assert child.rlimit(resource.RLIMIT_FSIZE) == (0, 0)
    assert child.rlimit(resource.RLIMIT_NOFILE)[1] <= 16


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import time\n"
        "from tests.unit.service.decoding.test_process import *\n"
        f"process = starting(Path({str(tmp_path)!r}))\n"
        "process.decode(encoded(50), SMALL)\n"
        "print(process._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    eventually(lambda: not lives(child), "the decoding process to end")


def test_a_large_image_waits_for_its_turn_and_a_small_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = starting(tmp_path)
    try:
        with Turns(tmp_path, number=1).turn(0):
            assert process.decode(encoded(50), SMALL, is_large=False).shape == (3, 224, 224)
            monkeypatch.setattr(module, "TURN_SECONDS", 0.1)
            with pytest.raises(UnavailableError, match="other large images"):
                process.decode(encoded(50), SMALL)
        assert process.decode(encoded(50), SMALL).shape == (3, 224, 224)
    finally:
        process.close()


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


def test_one_that_comes_again_lets_others_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.5)  # enough for a thread that waits on a busy machine
    order: list[str] = []
    first, second = Turns(tmp_path, number=1), Turns(tmp_path, number=1)
    is_waiting = threading.Event()

    def wait() -> None:
        is_waiting.set()
        with second.turn(30):
            order.append("second")

    for _ in range(3):
        with first.turn(30):
            thread = threading.Thread(target=wait)
            thread.start()
            assert is_waiting.wait(30)
            is_waiting.clear()
            time.sleep(0.3)
        with first.turn(30):
            order.append("first")
        thread.join()
    assert order == ["second", "first"] * 3


def test_the_turn_of_a_process_that_dies_is_over(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE)
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
