"""One request and its answer as evidence: names and lengths of what was sent, values by allow-list only (R2.2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from email import policy
from email.message import Message
from email.parser import BytesParser
from types import MappingProxyType
from urllib.parse import parse_qsl

from requests import PreparedRequest

from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.transport.reply import Reply

MOST_FIELDS = 60
NAME_LIMIT = 80
TEXT_LIMIT = 500_000
# Bytes of a body that are looked at; fields stand before files.
BODY_LIMIT = 64 * 1024
_NOTHING: Mapping[str, str] = MappingProxyType({})

# Request headers whose values say nothing about anybody, and those that are neither shown nor secret.
_SHOWN = frozenset({"accept", "content-type", "user-agent"})
_ORDINARY = frozenset(
    {"accept-encoding", "accept-language", "connection", "content-length", "host", "origin", "referer",
     "upgrade-insecure-requests"}
)  # fmt: skip
# A shorter value is a choice such as a language; masking it would mask ordinary words.
_SHORTEST_SECRET = 6
_LONGEST_SECRET = 8 * 1024

Pairs = list[tuple[str, str]]


def described(
    request: PreparedRequest,
    url: Url,
    answer: Reply | str,
    *,
    marks: Collection[str] = (),
    cookies: Iterable[str] = (),
) -> Exchange:
    """Return a request with its answer, or with why none came; `marks`: names of headers that are the harness's own.

    `cookies`: values that the site has set.
    """
    shown = _SHOWN | {name.lower() for name in marks}
    sent = {str(name): _text(value) for name, value in request.headers.items()}
    query = parse_qsl((request.url or "").partition("?")[2], keep_blank_values=True)
    posted = [*query, *_posted(request, sent.get("Content-Type", ""))]
    reply = answer if isinstance(answer, Reply) else None
    return Exchange(
        method=request.method or "",
        url=url,
        headers={name: value if name.lower() in shown else None for name, value in sent.items()},
        fields=_names_and_lengths(posted, len(_body(request))),
        status=reply.status if reply else None,
        answer_headers=_answer_headers(reply) if reply else _NOTHING,
        text=reply.text[:TEXT_LIMIT] if reply else "",
        secrets=_long_enough((*_secrets(sent, shown), *_values(posted), *cookies)),
        why=answer if isinstance(answer, str) else None,
    )


def _names_and_lengths(posted: Pairs, whole: int) -> tuple[tuple[str, int], ...]:
    named = tuple((name[:NAME_LIMIT], len(value)) for name, value in posted[:MOST_FIELDS])
    return named if whole <= BODY_LIMIT else (*named, ("(whole body)", whole))


def _long_enough(values: Iterable[str]) -> tuple[str, ...]:
    return tuple({value[:_LONGEST_SECRET] for value in values if len(value) >= _SHORTEST_SECRET})


def _answer_headers(reply: Reply) -> dict[str, str]:
    shown = {"content-type": reply.content_type}
    if reply.location is not None:
        shown["location"] = _without_query(reply.url, reply.location)
    return shown


def _without_query(page: Url, location: str) -> str:
    try:
        return page.join(location).without_query
    except (UrlRefused, ValueError):
        return "an address that is refused"


def _secrets(sent: Mapping[str, str], shown: Collection[str]) -> Iterator[str]:
    """Yield the values of headers that may be credentials, each cookie by itself."""
    for name, value in sent.items():
        match name.lower():
            case "cookie":
                yield from (pair.partition("=")[2] for pair in value.split("; "))
            case "authorization":
                yield value.rpartition(" ")[2]
            case other if other not in shown and other not in _ORDINARY:
                yield value


def _values(posted: Pairs) -> Iterator[str]:
    for _, value in posted:
        # A page shows a value with its own ends of lines.
        yield from (value, *value.splitlines())


def _body(request: PreparedRequest) -> bytes:
    body = request.body.encode() if isinstance(request.body, str) else request.body
    return body if isinstance(body, bytes) else b""


def _posted(request: PreparedRequest, content_type: str) -> Pairs:
    """Return the fields of a body; one in another shape is a single field."""
    packed = _body(request)[:BODY_LIMIT]
    if not packed:
        return []
    kind = content_type.partition(";")[0].strip().lower()
    text = packed.decode("utf-8", "replace")
    match kind:
        case "application/x-www-form-urlencoded":
            return parse_qsl(text, keep_blank_values=True)
        case "multipart/form-data":
            return _parts(packed, content_type)
        case "text/plain":
            return [(name, value) for name, _, value in (line.partition("=") for line in text.splitlines())]
    if kind == "application/json" or kind.endswith("+json"):
        return list(_leaves(_parsed(text), ""))
    return [("(body)", text)]


def _parts(packed: bytes, content_type: str) -> Pairs:
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=policy.HTTP).parsebytes(head + packed)
    return [
        (str(part.get_param("name", "", header="content-disposition")), _content(part)) for part in message.iter_parts()
    ]


def _content(part: Message) -> str:
    content = part.get_payload(decode=True)
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else ""


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield each value of a JSON body under its dotted path."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{number}" if path else str(number))
    else:
        yield path or "(body)", value if isinstance(value, str) else json.dumps(value)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
