"""`python -m lifelong_service.decoding.child`: decodes images until its input ends.

The serving process starts it and may kill it at any time. It limits its processor time for each image and its memory,
may open no sockets and start no processes, and ends with its parent. So an image cannot harm the service, even if it
exploits a decoder.

The serving process has checked the header of each image. For each image, this process reads two frames (a document and
the image), and answers with a document: `error`, or the `shape` of the model's input, followed by its content.
"""

import json
import os
import resource
import signal
import sys
from typing import Any, BinaryIO, Final

from PIL import Image

from lifelong_core.images import model_input
from lifelong_core.runtime.logs import configure_logging, early_format
from lifelong_core.values.errors import InvalidInputError, LifelongError, PayloadTooLargeError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service import confinement
from lifelong_service.decoding import frames

BYTES_PER_PIXEL: Final = 40
"""Address space for decoding and preprocessing one pixel: coefficients of a progressive JPEG (6 to 12), decoded pixels
(4) and their upright copy (4), a model input of three float32 and its copy (24)."""
ERRORS: Final[dict[str, type[LifelongError]]] = {
    error.code: error for error in (InvalidInputError, PayloadTooLargeError)
}


def main() -> int:
    """Decode images one after the other until the input ends."""
    configure_logging(early_format())
    limits = json.loads(sys.argv[1])
    Image.init()  # loads the readers of all formats, which would delay the first image
    source, answers = sys.stdin.buffer, _private_output()
    _confine(limits["maximum_pixels"])
    while True:
        try:
            request = frames.read_document(source)
            image = frames.read_frame(source)
        except EOFError:
            return 0
        signal.setitimer(signal.ITIMER_PROF, limits["seconds"])
        _answer(answers, request, image, limits["maximum_pixels"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        del image  # frees its memory while the next image is read


def _private_output() -> BinaryIO:
    """Return standard output for frames only; output of libraries goes to standard error."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return output


def _confine(maximum_pixels: int) -> None:
    """Drop all rights that decoding does not need."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the parent ends this process
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process when an image exceeds its processor time
    confinement.end_with_parent()  # lower priority than ordinary images, which the parent decodes
    confinement.refuse_calls()  # without support of the kernel, the limits below still apply
    confinement.limit_memory(BYTES_PER_PIXEL * maximum_pixels + (64 << 20))
    for kind, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_NPROC, 0),
    ):
        confinement.limit(kind, most)


def _answer(answers: BinaryIO, request: dict[str, Any], image: bytes, maximum_pixels: int) -> None:
    try:
        preprocessing = Preprocessing.model_validate(request["preprocessing"])
        pixels = model_input(image, preprocessing, maximum_pixels=maximum_pixels)
    except MemoryError:
        error: LifelongError = PayloadTooLargeError(
            "decoding the image takes too much memory.", field="image", hint="Send it at a lower resolution."
        )
    except LifelongError as refused:
        error = refused
    else:
        frames.write_array(answers, pixels)
        return
    code = error.code if error.code in ERRORS else InvalidInputError.code
    frames.write_document(
        answers, {"error": {"code": code, "message": error.message, "field": error.field, "hint": error.hint}}
    )


if __name__ == "__main__":
    sys.exit(main())
