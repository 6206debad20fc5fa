"""URLs that were parsed once and rebuilt; only the rebuilt form is ever used (R0.6)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ufeff]|[\ud800-\udfff]")
_PORT = re.compile(r"[1-9][0-9]{0,4}\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATH = re.compile(r"/[^?#\\\x00-\x20\x7f-\U0010ffff]*\Z")
_QUERY = re.compile(r"[^#\\\x00-\x20\x7f-\U0010ffff]*\Z")
# What browsers leave alone in a path and in a query. Everything else is percent-encoded as UTF-8, so that one
# address has one spelling in fingerprints, rules and request lines.
_KEPT_IN_PATH = "%/:@!$&'()*+,;=|[]"
_KEPT_IN_QUERY = "%/:@!$&()*+,;=|[]?`{}^"


class UrlRefused(ValueError):
    """The text is not a URL that can mean one thing only; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Scheme, host and port in canonical spelling; `str()` leaves a default port out."""

    scheme: str
    host: str
    port: int

    def __post_init__(self) -> None:
        """Hold every origin to the canonical spelling, also one that was not parsed.

        Raises:
            UrlRefused: scheme, host or port is not canonical.
        """
        if self.scheme not in _DEFAULT_PORTS:
            raise UrlRefused("its scheme is not http or https in lower case")
        _require_host(self.host)
        if not 1 <= self.port <= 65535:
            raise UrlRefused("its port is not a number from 1 to 65535")

    @property
    def is_loopback(self) -> bool:
        """Whether the host is a literal loopback address or `localhost` (R0.3); nothing is resolved."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def is_address(self) -> bool:
        """Whether the host is an IP address and not a name."""
        return self.host.startswith("[") or self.host.rpartition(".")[2][0].isdigit()

    @property
    def is_plain(self) -> bool:
        """Whether the origin is reached without TLS."""
        return self.scheme == "http"

    def __str__(self) -> str:
        port = "" if _DEFAULT_PORTS[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    @classmethod
    def parse(cls, text: str) -> Origin:
        """Return the origin written as `scheme://host[:port]`.

        Raises:
            UrlRefused: it is not canonical, or says more than an origin.
        """
        url = Url.parse(text)
        if text.removesuffix("/") != str(url.origin):
            raise UrlRefused(f"write the origin as {url.origin}, without a path")
        return url.origin


@dataclass(frozen=True, slots=True)
class Url:
    """A canonical absolute http(s) URL without fragment and user info."""

    origin: Origin
    path: str
    query: str

    def __post_init__(self) -> None:
        """Keep path and query from running into their neighbours when the parts are put together.

        Raises:
            UrlRefused: the path does not start with a slash, or a part holds a delimiter or a character that
                must be percent-encoded.
        """
        if not _PATH.match(self.path):
            raise UrlRefused("its path is not an absolute, percent-encoded one")
        if not _QUERY.match(self.query):
            raise UrlRefused("its query is not percent-encoded")

    def __str__(self) -> str:
        return f"{self.origin}{self.path}" + (f"?{self.query}" if self.query else "")

    def __repr__(self) -> str:
        return f"Url({self.without_query!r})"

    @property
    def without_query(self) -> str:
        """The form that may be shown, recorded and told to a provider."""
        return f"{self.origin}{self.path}"

    @property
    def target(self) -> str:
        """Path and query, as they stand in a request line."""
        return self.path + (f"?{self.query}" if self.query else "")

    @classmethod
    def parse(cls, text: str) -> Url:
        """Return the URL, rebuilt from its parts.

        Raises:
            UrlRefused: user info, a backslash, white space or a control character; a scheme, host or port
                that is not written canonically; no host at all.
        """
        if not isinstance(text, str) or not text:
            raise UrlRefused("it is empty")
        if _FORBIDDEN.search(text):
            raise UrlRefused("it holds white space, a backslash or a control character")
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in _DEFAULT_PORTS:
            raise UrlRefused("it does not start with a lower-case http:// or https://")
        authority, path, query = _split(rest)
        origin = Origin(scheme, *_host_and_port(authority, _DEFAULT_PORTS[scheme]))
        return cls(origin, _normal_path(path), _quoted(query, _KEPT_IN_QUERY))

    def join(self, reference: str) -> Url:
        """Return what a reference on a page at this URL points to.

        Raises:
            UrlRefused: the result, or the reference itself, is not canonical.
        """
        reference = reference.strip(" \t\r\n\f")
        if _FORBIDDEN.search(reference):
            raise UrlRefused("it holds white space, a backslash or a control character")
        if _SCHEME.match(reference):
            return Url.parse(reference)
        # After more than two slashes browsers read a host and RFC 3986 none; parse() refuses the empty host.
        if reference.startswith("//"):
            return Url.parse(f"{self.origin.scheme}:{reference}")
        relative = reference.split("#", 1)[0]
        path, has_query, query = relative.partition("?")
        if not path:
            return Url(self.origin, self.path, _quoted(query, _KEPT_IN_QUERY) if has_query else self.query)
        folder = "" if path.startswith("/") else self.path[: self.path.rindex("/") + 1]
        return Url(self.origin, _normal_path(folder + path), _quoted(query, _KEPT_IN_QUERY))


def _split(rest: str) -> tuple[str, str, str]:
    before_fragment = rest.split("#", 1)[0]
    before_query, _, query = before_fragment.partition("?")
    authority, slash, path = before_query.partition("/")
    return authority, slash + path, query


def _host_and_port(authority: str, default: int) -> tuple[str, int]:
    if "@" in authority:
        raise UrlRefused("it holds user info before an @")
    if "%" in authority:
        raise UrlRefused("its host is percent-encoded")
    host, port = authority, default
    if authority.startswith("["):
        host, bracket, tail = authority.partition("]")
        if not bracket:
            raise UrlRefused("its IPv6 address is not closed by ]")
        host += "]"
    else:
        host, colon, tail = authority.partition(":")
        tail = colon + tail
    if tail:
        port = _port(tail, default)
    return host, port


def _port(tail: str, default: int) -> int:
    digits = tail.removeprefix(":")
    if tail[0] != ":" or not _PORT.match(digits) or int(digits) > 65535:
        raise UrlRefused("its port is not written as a plain number from 1 to 65535")
    if int(digits) == default:
        raise UrlRefused(f"leave out the default port :{default}")
    return int(digits)


def _require_host(host: str) -> None:
    if not host:
        raise UrlRefused("it has no host")
    if host.startswith("["):
        _require_ipv6(host)
        return
    if host.endswith("."):
        raise UrlRefused("its host ends with a dot")
    if not host.isascii():
        raise UrlRefused("its host is not ASCII; write an international name in its xn-- form")
    # A host whose last label starts with a digit is an IPv4 address in some spelling: browsers, resolvers and
    # Python read 127.1, 0x7f.1, 017700000001 and 2130706433 differently, so only the dotted quad is taken.
    if host.rpartition(".")[2][:1].isdigit():
        _require_ipv4(host)
    elif len(host) > 253 or not all(_LABEL.match(label) for label in host.lower().split(".")):
        raise UrlRefused("its host is not a valid name")
    elif host != host.lower():
        raise UrlRefused(f"write its host in lower case: {host.lower()}")


def _require_ipv4(host: str) -> None:
    try:
        canonical = str(ipaddress.IPv4Address(host))
    except ValueError:
        canonical = ""
    if canonical != host:
        raise UrlRefused("its IPv4 address is not written as four decimal numbers")


def _require_ipv6(host: str) -> None:
    try:
        address = ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        raise UrlRefused("its IPv6 address is not valid") from None
    if address.ipv4_mapped is not None or address.scope_id is not None:
        raise UrlRefused("its IPv6 address stands for something else: write the IPv4 address, leave out a zone")
    if f"[{address}]" != host:
        raise UrlRefused(f"write its IPv6 address as [{address}]")


def _normal_path(path: str) -> str:
    """Resolve dot segments as browsers do, so that a prefix check and the server see the same path."""
    segments: list[str] = []
    parts = path.split("/")[1:] or [""]
    for index, part in enumerate(parts):
        plain = part.lower().replace("%2e", ".")
        last = index == len(parts) - 1
        if plain == "..":
            if segments:
                segments.pop()
            if last:
                segments.append("")
        elif plain == ".":
            if last:
                segments.append("")
        else:
            segments.append(part)
    return "/" + _quoted("/".join(segments), _KEPT_IN_PATH)


def _quoted(text: str, kept: str) -> str:
    return quote(text, safe=kept)
