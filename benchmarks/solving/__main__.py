"""Has so many solves in flight at once, measures this process meanwhile, then lets them end.

    python -m solving '{"provider": URL, "site": URL, "audit": URL, "folder": PATH, "key": KEY, "solves": 500}'

The sandbox must have been told to say "not ready" to every poll; it is told otherwise after the measurement. Prints
one JSON object: cores, MiB of memory, threads, and the ids of the tasks.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from peak import peak_mib
from pytest_captcha_qa.engine.stop import Stop
from solving.account import Account

_RAMP = 6.0  # seconds over which the solves begin, so that they do not poll all at once
_SETTLE = 12.0  # seconds until all of them poll
_MEASURED = 20.0


def main(told: dict[str, Any]) -> None:
    """Run, and print what was found."""
    solves, waiting = told["solves"], Stop()
    account = Account(
        told["provider"], told["site"], told["key"], Path(told["folder"]), scale=1.0, in_flight=2 * solves
    )

    def one(number: int) -> str:
        waiting.wait(_RAMP * number / solves)
        return account.obtain(f"solve {number}")

    with ThreadPoolExecutor(solves) as pool:
        tasks = [pool.submit(one, number) for number in range(solves)]
        waiting.wait(_RAMP + _SETTLE)
        found = _measured(waiting)
        _let_them_end(told["audit"])
        found["tasks"] = [task.result() for task in tasks]
    account.close()
    print(json.dumps(found))


def _measured(waiting: Stop) -> dict[str, Any]:
    began, used = time.monotonic(), time.process_time()
    waiting.wait(_MEASURED)
    cores = (time.process_time() - used) / (time.monotonic() - began)
    return {"cores": cores, "mib": peak_mib(), "threads": threading.active_count()}


def _let_them_end(audit: str) -> None:
    body = json.dumps({"faults": {"provider": []}}).encode()
    request = urllib.request.Request(f"{audit}/control", data=body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10):
        pass


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
