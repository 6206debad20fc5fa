"""`python -m faults`: grades clients of solving services against the faults and prints the matrix."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from faults.environment import Unavailable
from faults.grading import Grade, table, tally
from faults.matrix import KNOWN, Client, graded
from faults.rows import ROWS


def main() -> int:
    """Grade, print, write; 1 if a row of our own client is wrong."""
    options = _parser().parse_args()
    clients = [KNOWN[name] for name in options.clients.split(",") if name]
    if options.adapter:
        clients.append(
            Client(options.adapter.stem, options.adapter, sdk=options.sdk_environment, deadline=options.deadline)
        )
    rows = [row for row in ROWS if options.row in row.name]
    try:
        grades = graded(clients, rows)
    except Unavailable as why:
        print(f"the official SDKs cannot be installed: {why}", file=sys.stderr)
        return 2
    print(table(grades), tally(grades), sep="\n\n")
    _write(options.output, grades)
    return int(any(grade.client.startswith("ours") and not grade.right for grade in grades))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument(
        "--clients", default=",".join(KNOWN), help=f"of {', '.join(KNOWN)}; empty for the adapter alone"
    )
    parser.add_argument("--adapter", type=Path, help="a client of yours: a script that calls serving.serve(solve)")
    parser.add_argument("--sdk-environment", action="store_true", help="run the adapter where the official SDKs are")
    parser.add_argument("--deadline", type=float, default=12.0, help="seconds after which the adapter has to give up")
    parser.add_argument("--row", default="", help="only rows whose name contains this")
    parser.add_argument("--output", type=Path, default=Path("reports"), help="folder for faults.txt and faults.json")
    return parser


def _write(folder: Path, grades: list[Grade]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "faults.txt").write_text(f"{table(grades)}\n\n{tally(grades)}\n", "utf-8")
    (folder / "faults.json").write_text(json.dumps([grade.as_json() for grade in grades], indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
