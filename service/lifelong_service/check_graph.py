"""`python -m lifelong_service.check_graph`: would the service take this graph? For `lifelong models add`.

The command line may not import the service, so it asks this process. Exit status 0: yes; 2: no, and the last line of
standard output is the error as JSON.
"""

import argparse
import json
import sys
from pathlib import Path

from lifelong_core.errors import InvalidInputError
from lifelong_core.store.preprocessing import Preprocessing
from lifelong_service.inference import load_classifier

REFUSED = 2


def main() -> int:
    """Load the graph as a worker would and run it once."""
    parser = argparse.ArgumentParser(description="Check that the service can run an ONNX graph.")
    parser.add_argument("graph", type=Path)
    parser.add_argument("preprocessing", help="the preprocessing document as JSON")
    parser.add_argument("classes", type=int)
    arguments = parser.parse_args()
    preprocessing = Preprocessing.model_validate_json(arguments.preprocessing)
    try:
        load_classifier(arguments.graph, preprocessing, classes=arguments.classes)
    except InvalidInputError as error:
        print(json.dumps({"message": error.message, "field": error.field, "mend": error.mend}))  # noqa: T201
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
