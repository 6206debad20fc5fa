"""Which of our kinds a failure of the HTTP libraries is: one total table."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import requests.exceptions as rq
import urllib3.exceptions as u3

from pytest_captcha_qa.transport.threads import ThreadsExhausted

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "dns": "its host name could not be resolved",
        "refused": "the connection was refused or there is no way to the host",
        "connect_timeout": "no connection was made in the time given",
        "proxy": "the configured proxy did not let the request through",
        "tls": "TLS failed: check the certificate, and `ca_file` if the site uses a private authority",
        "reset": "the connection was closed before the answer was complete",
        "timeout": "the answer was not complete in the time given",
        "too_large": "the answer is larger than is read",
        "unreadable": "the answer is not readable HTTP",
        "redirect": "it redirects too often",
        "resources": "this machine is out of threads, open files or memory: run fewer workers",
        "request": "the request cannot be written: check the configured headers, cookies and proxy",
    }
)
"""The kinds of TransportError, each with what it means in words."""

LIBRARY_ERRORS = (rq.RequestException, u3.HTTPError, http.client.HTTPException, OSError, ValueError)
"""All that sending may raise; a ValueError is about a header or a proxy that cannot be written."""

# First match wins, over the error and all it wraps: a cause says more than its wrapper, so causes come first.
_TABLE: tuple[tuple[type[BaseException], str], ...] = (
    (ThreadsExhausted, "resources"),
    (u3.ProxyError, "proxy"),
    (rq.ProxyError, "proxy"),
    (u3.ProxySchemeUnknown, "request"),
    (u3.ProxySchemeUnsupported, "request"),
    (u3.NameResolutionError, "dns"),
    (socket.gaierror, "dns"),
    (ssl.SSLError, "tls"),
    (u3.SSLError, "tls"),
    (rq.SSLError, "tls"),
    (u3.NewConnectionError, "refused"),
    (ConnectionRefusedError, "refused"),
    (u3.ConnectTimeoutError, "connect_timeout"),
    (rq.ConnectTimeout, "connect_timeout"),
    (TimeoutError, "timeout"),
    (u3.TimeoutError, "timeout"),
    (rq.Timeout, "timeout"),
    (rq.TooManyRedirects, "redirect"),
    (ConnectionError, "reset"),  # the built-in one: reset, aborted, broken pipe, remote disconnected
    (u3.InvalidChunkLength, "unreadable"),
    (http.client.IncompleteRead, "reset"),
    (http.client.HTTPException, "unreadable"),
    (u3.DecodeError, "unreadable"),
    (u3.InvalidHeader, "unreadable"),
    (u3.HeaderParsingError, "unreadable"),
    (u3.BodyNotHttplibCompatible, "unreadable"),
    (u3.ResponseError, "unreadable"),
    (u3.ProtocolError, "unreadable"),
    (rq.ChunkedEncodingError, "unreadable"),
    (rq.ContentDecodingError, "unreadable"),
    (rq.InvalidJSONError, "unreadable"),
    (rq.StreamConsumedError, "unreadable"),
    (rq.HTTPError, "unreadable"),
    (u3.LocationValueError, "request"),
    (u3.UnrewindableBodyError, "request"),
    (u3.TimeoutStateError, "request"),
    (rq.InvalidURL, "request"),
    (rq.InvalidHeader, "request"),
    (rq.InvalidSchema, "request"),
    (rq.MissingSchema, "request"),
    (rq.URLRequired, "request"),
    (rq.UnrewindableBodyError, "request"),
    (rq.ConnectionError, "reset"),
    (rq.RetryError, "reset"),
    (u3.PoolError, "reset"),
    (ValueError, "request"),
)
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_OTHERWISE = "reset"  # an OSError of some other number, on an open connection


def kind_of(error: BaseException) -> str:
    """Return the kind of a library's error, judged by everything it wraps."""
    return known_kind(error) or _OTHERWISE


def known_kind(error: BaseException) -> str | None:
    """Return the kind the table names, None where it names none."""
    family = list(_wrapped(error, set()))
    if any(isinstance(member, OSError) and member.errno in _SCARCE for member in family):
        return "resources"
    for cls, kind in _TABLE:
        if any(isinstance(member, cls) for member in family):
            return kind
    return None


def _wrapped(error: BaseException, seen: set[int]) -> Iterator[BaseException]:
    if id(error) in seen:
        return
    seen.add(id(error))
    yield error
    inner = [*error.args, getattr(error, "reason", None), error.__cause__, error.__context__]
    for candidate in inner:
        if isinstance(candidate, BaseException):
            yield from _wrapped(candidate, seen)
