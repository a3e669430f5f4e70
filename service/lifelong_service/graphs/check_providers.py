"""`python -m lifelong_service.graphs.check_providers`: check whether a service can start with execution providers.

The request on standard input is {"execution_providers": [...], "device": 0}; the last line of standard output is the
answer, with the exit status as in `check_graph`.
"""

import json
import sys

from lifelong_core.values.errors import LifelongError
from lifelong_service.graphs.check_graph import REFUSED
from lifelong_service.graphs.providers import choose_providers


def main() -> int:
    """Read the request, check the providers, and write the answer."""
    try:
        request = json.load(sys.stdin)
        chosen = choose_providers(request["execution_providers"], device=request["device"])
    except LifelongError as error:
        answer = {"code": error.code, "message": error.message, "field": error.field, "hint": error.hint}
        print(json.dumps(answer))  # noqa: T201
        return REFUSED
    print(json.dumps({"providers": chosen.names, "unused_gpu": chosen.unused_gpu}))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
