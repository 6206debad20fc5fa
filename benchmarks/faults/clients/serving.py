"""How a client under test is talked to: a program that reads jobs as JSON lines and answers each with one.

A job is `{"id", "type", "key", "http", "https", "dialect", "page", "deadline", "interval", "data": {...}}`: two
addresses of the service, whose dialect it speaks, the page, seconds until the client has to give up and between two of
its polls, and what the page shows (`sitekey`, `challenge`, `challenge_json`, `image` in base64). The answer is
`{"id", "token"}`, or `{"id", "error", "own", "task"}`: what was raised, whether by a class of the client's own, and the
task's id if the error tells it; and `seconds` in both. An empty line comes first, once all is loaded. Standard library
only: it runs in the environments of foreign SDKs.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Solve = Callable[[Any], Any]
_SHOWN = 200


def serve(solve: Solve, *own: str) -> None:
    """Answer jobs, each in a thread of its own, until stdin ends; `own` are the packages of the client's own errors."""
    lock = threading.Lock()
    print(flush=True)

    def work(job: Any) -> None:
        began = time.monotonic()
        answer = {"id": job["id"], **_outcome(solve, job, own)}
        answer["seconds"] = time.monotonic() - began
        with lock:
            print(json.dumps(answer), flush=True)

    for line in sys.stdin:
        # A client without a time-out never comes back; as a daemon its thread ends with the program.
        threading.Thread(target=work, args=(json.loads(line),), daemon=True).start()


def _outcome(solve: Solve, job: Any, own: Any) -> Any:
    try:
        return {"token": solve(job)}
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what is graded
        kind = type(error)
        name = f"{kind.__name__}: {error}".replace(job["key"], "KEY")[:_SHOWN]
        task = getattr(error, "task_id", None)
        return {"error": name, "own": kind.__module__.partition(".")[0] in own, "task": task}
