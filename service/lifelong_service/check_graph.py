"""`python -m lifelong_service.check_graph`: would a worker take this graph?

The request comes as one JSON document on standard input, see `lifelong_core.graph_check`; the last line of standard
output is the answer. Exit status 0: the graph was loaded and run, and `output` holds it as one self-contained file;
2: it is refused, and the answer is the error.
"""

import json
import sys
from pathlib import Path
from typing import Any

from lifelong_core.errors import LifelongError
from lifelong_core.preprocessing import Preprocessing
from lifelong_service.inference import Classifier, load_classifier
from lifelong_service.self_contained import self_contained

REFUSED = 2


def main() -> int:
    """Answer the request."""
    try:
        classifier = _load(json.load(sys.stdin))
    except LifelongError as error:
        answer = {"code": error.code, "message": error.message, "field": error.field, "mend": error.mend}
        print(json.dumps(answer))  # noqa: T201
        return REFUSED
    print(json.dumps({"provider": classifier.provider}))  # noqa: T201
    return 0


def _load(request: dict[str, Any]) -> Classifier:
    """Write the self-contained graph to `output` and run exactly that file, in a folder where nothing else lies."""
    folder = request["external_data"]
    output = Path(request["output"])
    output.write_bytes(
        self_contained(
            Path(request["graph"]),
            None if folder is None else Path(folder),
            maximum_bytes=request["maximum_bytes"],
        )
    )
    return load_classifier(
        output,
        Preprocessing.model_validate(request["preprocessing"]),
        classes=request["classes"],
        providers=request["execution_providers"],
        threads=request["threads"],
    )


if __name__ == "__main__":
    sys.exit(main())
