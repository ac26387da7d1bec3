"""How does the process serve in which a local model runs?

    python -m oh_kernel.llm.local_server < a line of JSON: {"path": FILE, "key": KEY}

Answers with a line {"url": ...} when the model is loaded, or {"error": ...}. Then OpenAI's API is
served on loopback until standard input ends: the parent has no more use for it, or has died.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

CONTEXT_TOKENS = 16_384
# Small models that are let choose freely lose the thread of their calls.
TEMPERATURE = 0.2


def main() -> None:
    """Serve until standard input ends."""
    order = json.loads(sys.stdin.readline())
    answer = _taken_for_answers()
    try:
        server = _server(order["path"], order["key"])
    except Exception as error:  # the library's, of any kind; the parent words it
        print(json.dumps({"error": str(error) or type(error).__name__}), file=answer, flush=True)
        return
    print(json.dumps({"url": server.listening_address}), file=answer, flush=True)
    sys.stdin.read()
    os._exit(0)  # a request may be running, whose answer nobody waits for


def _taken_for_answers() -> Any:
    """Standard output for us alone: the library prints what it likes, it goes to standard error."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answer


def _server(path: str, key: str) -> Any:
    import xllamacpp  # an extra of a hundred megabytes

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = path, {Path(path).stem}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.n_ctx, params.n_parallel = CONTEXT_TOKENS, 1
    params.use_jinja, params.ui, params.verbosity = True, False, 0
    params.sampling.temp = TEMPERATURE
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
