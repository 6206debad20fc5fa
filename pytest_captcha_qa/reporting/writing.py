"""Files that others read, written in one step."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from pytest_captcha_qa.errors import RecordError


def write_json(content: object, path: Path, *, what: str) -> None:
    """Write JSON in ASCII; a reader sees the old file or the whole new one. `what` names it in the error.

    Raises:
        RecordError: it cannot be written there.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    text = json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as failure:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise RecordError(f"{what} cannot be written to {path}: {failure.strerror}") from None
