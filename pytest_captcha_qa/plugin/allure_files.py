"""What stands beside the results in Allure's folder: the environment, the categories and the verdict of the run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_captcha_qa import __version__
from pytest_captcha_qa.model.attempt import Fault
from pytest_captcha_qa.reporting.verdict import Verdict

ENVIRONMENT, CATEGORIES = "environment.properties", "categories.json"
_MARK = "captcha fault:"
_PREFIX = "captcha."

# In the order in which a reader acts on them; a failure that is nobody's of these keeps Allure's own categories.
_NAMES: Mapping[Fault, str] = {
    Fault.PRODUCT: "Product defect: a protected form is broken",
    Fault.PROVIDER: "No verdict: the provider had trouble",
    Fault.INFRASTRUCTURE: "No verdict: network, store or site could not be reached",
    Fault.UNDETERMINED: "No verdict: whose fault it is was not found out",
    Fault.SCOPE: "Target not authorised: nothing was sent",
    Fault.CONFIG: "Configuration or budget",
}


def marked(message: str | None, fault: str) -> str:
    """Return a failure's message with the line by which the categories know whose fault it is."""
    return f"{message or ''}\n\n{_MARK} {fault}".strip()


def categories() -> list[dict[str, Any]]:
    """Return what categories.json holds, as Allure 2 reads it and the configuration of Allure 3 takes it.

    Allure 2 matches the whole message, Allure 3 looks for a part of it: the pattern serves both.
    """
    return [
        {"name": name, "matchedStatuses": _statuses(fault), "messageRegex": rf"[\s\S]*{_MARK} {fault}\b[\s\S]*"}
        for fault, name in _NAMES.items()
    ]


def write_categories(folder: Path) -> None:
    """Write categories.json, unless the team has put one of its own there."""
    path = folder / CATEGORIES
    if not path.exists():
        _replace(path, json.dumps(categories(), indent=2) + "\n")


def write_environment(folder: Path, about: Mapping[str, str | None]) -> None:
    """Write our lines into environment.properties; what else stands there is kept."""
    path = folder / ENVIRONMENT
    earlier = path.read_text("latin-1").splitlines() if path.exists() else []
    kept = [line for line in earlier if not line.startswith(_PREFIX)]
    ours = [f"{_PREFIX}{name}={_escaped(value)}" for name, value in about.items() if value]
    _replace(path, "\n".join([*kept, *ours]) + "\n")


def about_run(verdict: Verdict, *, account: str, provider: str) -> dict[str, str | None]:
    """Return what a run was, by the names under which the report's page of the environment shows it."""
    return {
        "environment": verdict.environment,
        "release": ", ".join(verdict.releases) or None,
        "run": verdict.run_id,
        "provider": provider,
        "account": account,
        "key_mode": ", ".join(verdict.key_modes) or None,
        "time_scale": f"{verdict.time_scale:g}" if verdict.time_scale != 1 else None,
        "verdict": verdict.sentence,
        "harness": f"pytest-captcha-qa {__version__}",
    }


def _statuses(fault: Fault) -> list[str]:
    """Return the statuses a fault may have: `--captcha-outage=skip` shows an outage as a skip."""
    skipped = fault in (Fault.PROVIDER, Fault.INFRASTRUCTURE)
    return ["failed", "broken", "skipped"] if skipped else ["failed", "broken"]


def _escaped(value: str) -> str:
    """Return a value of a .properties file, which is read as Latin-1 and where a backslash escapes."""
    plain = re.sub(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", value).replace("\\", "\\\\")
    units = plain.encode("utf-16-be", "replace")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole: reports are generated while others are still running."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    beside.write_text(text, encoding="ascii")
    os.replace(beside, path)
