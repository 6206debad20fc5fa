"""Drafts of submits, and how each is written as a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.forms.entries import MULTIPART, PLAIN, Delivery, Entries
from pytest_captcha_qa.model.body import copied, put
from pytest_captcha_qa.model.draft import Draft, Wire
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.transport import NO_PAYLOAD, File, Payload, json_body, multipart, urlencoded

_BY_TYPE = {MULTIPART: Wire.MULTIPART, PLAIN: Wire.TEXT}
_IN_QUERY = frozenset({"GET", "HEAD"})


def drafted(how: Delivery, entries: Entries, token_fields: Sequence[str]) -> Draft:
    """Return the draft of what a browser would send for a form."""
    wire = _BY_TYPE.get(how.enctype, Wire.FORM)
    return Draft(how.method, how.target, wire, tuple(entries), tuple(token_fields))


def written(draft: Draft, files: Sequence[File] = ()) -> tuple[Url, Payload]:
    """Return where a draft goes and with which payload; only multipart carries the files.

    Raises:
        ConfigError: a JSON body that has no place for one of the fields.
    """
    payload = NO_PAYLOAD if draft.method in _IN_QUERY else _WRITERS[draft.wire](draft, files)
    in_query = [(name, _text(value)) for name, value in draft.pairs] if draft.method in _IN_QUERY else []
    added = urlencode([*in_query, *draft.query])
    query = "&".join(part for part in (draft.target.query, added) if part)
    return Url(draft.target.origin, draft.target.path, query), payload.having(draft.headers, cookies=draft.cookies)


def _texts(draft: Draft) -> list[tuple[str, str]]:
    return [(name, _text(value)) for name, value in draft.pairs]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json(draft: Draft, files: Sequence[File]) -> Payload:
    if draft.nested is None:
        return json_body(dict(draft.pairs))
    body: dict[str, Any] = copied(draft.nested)
    for path, value in draft.pairs:
        try:
            put(body, path, value)
        except ValueError as wrong:
            raise ConfigError(f"the body of the form's submit has no such place: {wrong}") from None
    return json_body(body)


def _plain(draft: Draft, files: Sequence[File]) -> Payload:
    lines = "".join(f"{name}={value}\r\n" for name, value in _texts(draft))
    return Payload(lines.encode(), {"Content-Type": PLAIN})


_WRITERS: Mapping[Wire, Callable[[Draft, Sequence[File]], Payload]] = {
    Wire.FORM: lambda draft, files: urlencoded(_texts(draft)),
    Wire.JSON: _json,
    Wire.MULTIPART: lambda draft, files: multipart(_texts(draft), files),
    Wire.TEXT: _plain,
}
