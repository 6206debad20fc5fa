"""What a vendor may answer about a token that is in order, as data: refusals, trouble, answers that nobody can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_captcha_qa.model.probing import Fault

BAD_CERTIFICATE = "a client came to the server whose certificate is bad"
"""How the stand-in's mark begins where a backend has followed to such a server, whatever it made of it."""

_SLOW = 20.0  # seconds; the longest time-out of the libraries that were looked at is ten


class Answer(NamedTuple):
    """One answer of the vendor, in words and as the stand-in takes it; `fault`: what a policy may call it."""

    called: str
    outcome: Mapping[str, Any]
    fault: Fault | None = None


_CERTIFICATES = {
    "other_host": "is of another host", "expired": "has expired", "untrusted": "is by nobody who is trusted",
}  # fmt: skip
# No status comes with a success: a backend that reads `success` and no status is sound.
FAILURES = (
    *(
        Answer(f"a token that the vendor answers with {status}", {"status": status, "body": "html"}, fault)
        for status, fault in {
            400: None, 401: None, 403: None, 429: None, 500: Fault.SERVER_ERROR, 503: Fault.SERVER_ERROR,
        }.items()
    ),
    Answer("a token at which the vendor ends the connection", {"body": "reset"}, Fault.CONNECTION),
    Answer("a token of which the vendor says that it has a fault", {"code": "internal-error"}),
    *(
        Answer(
            f"a token about which a server answers whose certificate {is_bad}", {"certificate": kind}, Fault.CONNECTION,
        )
        for kind, is_bad in _CERTIFICATES.items()
    ),
)  # fmt: skip
# What comes late is a refusal: a backend that waits for it is patient, and only one that does not is open.
LATE_ANSWER = Answer("a token with a slow answer", {"delay": _SLOW, "code": "timeout-or-duplicate"}, Fault.TIMEOUT)
UNREADABLE = tuple(
    Answer(f"a token that the vendor answers with {called}", {"body": body}, Fault.UNREADABLE)
    for called, body in (
        ("HTML", "html"), ("nothing", "empty"), ("a list", "list"), ("null", "null"), ("half an object", "truncated"),
        ("a redirect to HTML", "redirect_html"),
    )
)  # fmt: skip
NO_SUCCESS = (
    Answer("a token that the vendor refuses without a code", {"code": ""}),
    Answer("a token without `success` in the answer", {"without": ["success"]}),
    Answer("a token with `success` 0", {"values": {"success": 0}}),
    Answer("a token with `success` null", {"values": {"success": None}}),
)
