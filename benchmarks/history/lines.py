"""Lines of record files as mappings, each a sound one that keywords change: for tests and for generated history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

IDS = [f"{number:032x}" for number in range(10)]
TIMES = [f"2026-11-29T11:18:{second:02d}.000Z" for second in range(60)]


def header(**fields: Any) -> dict[str, Any]:
    """Return the first line of a file."""
    said: dict[str, Any] = {
        "$type": "header",
        "ts": TIMES[0],
        "schema": 1,
        "tool": "pytest-captcha-qa 0.3.0",
        "run_id": "r1",
    }
    return said | {"env": "staging", "release": "1.3.0", "time_scale": 1.0, "shard": None} | fields


def started(**fields: Any) -> dict[str, Any]:
    """Return the line that is written before anything is sent."""
    said: dict[str, Any] = {"$type": "started", "ts": TIMES[1], "id": IDS[0], "slug": "signup", "type": "recaptcha_v2"}
    said |= {"env": "staging", "run_id": "r1", "purpose": "check", "expect": "accept", "nodeid": None, "worker": "gw0"}
    return said | {"project": "default", "account": "main", "key_mode": "live"} | fields


def attempt(**fields: Any) -> dict[str, Any]:
    """Return the line of an attempt that went well."""
    said: dict[str, Any] = {
        "$type": "attempt",
        "ts": TIMES[2],
        "id": IDS[0],
        "slug": "signup",
        "type": "recaptcha_v2",
        "task_id": "7",
    }
    said |= {"wait": 21.4, "verify_status": "pass", "env": "staging", "release": "1.3.0", "run_id": "r1"}
    said |= {"project": "default", "account": "main", "provider": "captchaai", "key_mode": "live", "purpose": "check"}
    said |= {"expect": "accept", "outcome": "ok", "fault": None, "error": None, "source": "solved", "generation": 1}
    said |= {"submits": 1, "polls": 5, "seconds": {"blocked": 21.5, "page": 0.4}, "token_prefix": "03AGdB"}
    said |= {"http_status": 303, "variant": None, "attempt": 1, "worker": "gw0", "worker_version": "0.3.0"}
    return said | {"nodeid": "test_forms.py::test_accepts[signup]", "synthetic": True} | fields


def event(**fields: Any) -> dict[str, Any]:
    """Return the line of an event."""
    return {"$type": "event", "ts": TIMES[3], "name": "store_degraded", "run_id": "r1", "data": {}} | fields


def footer(**fields: Any) -> dict[str, Any]:
    """Return the last line of a file."""
    return {"$type": "footer", "ts": TIMES[9], "run_id": "r1", "complete": True, "attempts": 1} | fields


def packed(line: dict[str, Any]) -> str:
    """Return a line as our writer writes it."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def write(path: Path, *lines: dict[str, Any]) -> Path:
    """Write a record file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(map(packed, lines)), "utf-8")
    return path


def write_run(records: Path, run_id: str, *, ids: list[str] = IDS[:1], whole: bool = True, **fields: Any) -> Path:
    """Write a run of one file: each id started and recorded, then an event; `fields` are those of the header."""
    about = {"run_id": run_id} | {name: fields[name] for name in ("env", "release") if name in fields}
    env = fields.get("env", "staging")
    of_run = {"run_id": run_id, "env": env}
    told = [line for one in ids for line in (started(id=one, **of_run), attempt(id=one, **about))]
    end = [footer(run_id=run_id, attempts=len(ids))] if whole else []
    lines = [header(**{"run_id": run_id} | fields), *told, event(run_id=run_id), *end]
    return write(records / env / f"{run_id}.jsonl", *lines)
