"""Fetches an ALTCHA challenge that is told by its address only, as CapSkip does: from this machine, and once."""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import replace
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.parse import urlsplit

import anyio.to_thread

from pytest_captcha_qa.sandbox.tasks import Refused
from pytest_captcha_qa.sandbox.web import Fields, is_loopback

_SECONDS = 5.0
_BODY_LIMIT = 64 * 1024


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the next address might not be on this machine."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())


async def with_challenge(fields: Fields) -> Fields:
    """Return the parameters with the challenge they name by `challenge_url`; one that is there already wins.

    Raises Refused: the address is not of this machine, or there is nothing.
    """
    address = fields.get("challenge_url")
    if not address or fields.get("challenge_json"):
        return fields
    if not _is_of_this_machine(address):
        raise Refused("ERROR_BAD_PARAMETERS")
    text = await anyio.to_thread.run_sync(_fetched, address, abandon_on_cancel=True)
    others = tuple(pair for pair in fields.pairs if pair[0] != "challenge_json")
    return replace(fields, pairs=(*others, ("challenge_json", text)))


def _fetched(address: str) -> str:
    try:
        with _OPENER.open(address, timeout=_SECONDS) as reply:
            content: bytes = reply.read(_BODY_LIMIT)
    except (OSError, HTTPException) as exc:
        raise Refused("ERROR_CAPTCHA_UNSOLVABLE") from exc
    return content.decode("utf-8", "replace")


def _is_of_this_machine(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme == "http" and is_loopback(parts.hostname or "")
    except ValueError:
        return False
