"""The body of an answer as evidence: what a reader would see of it, without what nobody else may see."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

from pytest_captcha_qa.model.evidence import Exchange
from pytest_captcha_qa.model.redact import MASK, Scrubber

EXCERPT_LIMIT = 2_000
# More is cleaned than is kept, so that the cut leaves no end of a secret that was not known whole.
_CLEANED = 2 * EXCERPT_LIMIT
_READ = 200_000

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNSEEN = frozenset({"script", "style", "template", "noscript", "textarea", "svg", "select", "datalist"})
_BLOCKS = frozenset({"p", "div", "li", "tr", "h1", "h2", "h3", "form", "section", "label", "br", "title", "pre", "td"})
_SECRET_KEY = re.compile(
    r"token|secret|passw|pwd|csrf|xsrf|session|cookie|auth|jwt|nonce|key|mail|phone", re.IGNORECASE
)
# Letters and digits without a blank, as long as no word is: a token or an id that somebody made at random.
_OPAQUE = re.compile(r"(?=[A-Za-z_+=~-]*\d)(?=[\d_+=~-]*[A-Za-z])[A-Za-z0-9_+=~-]{16,}")

Clean = Callable[[str], str]


def excerpt(exchange: Exchange, clean: Clean) -> str:
    """Return at most 2,000 characters of an answer: visible text of a page, JSON without values that may be secret.

    `clean` removes the secrets of the run; those of the exchange itself are removed here, and what looks random.
    """
    visible = _shown(exchange.text, exchange.answer_headers.get("content-type", ""))[:_CLEANED]
    own = Scrubber()
    own.learn(exchange.secrets)
    cleaned = _OPAQUE.sub(MASK, own.clean(clean(visible)))
    return cleaned if len(cleaned) <= EXCERPT_LIMIT else cleaned[: EXCERPT_LIMIT - 1] + "…"


def _shown(text: str, content_type: str) -> str:
    if content_type in _HTML or (not content_type and text.lstrip().startswith("<")):
        return visible_text(text)
    if content_type == "application/json" or content_type.endswith("+json"):
        return _without_secret_values(text)
    if content_type.startswith("text/") or not content_type:
        return _in_lines(text)
    return f"({content_type}, not shown)" if text else ""


def visible_text(html: str) -> str:
    """Return what a page shows in words: no markup, no attribute, no script, no content of a control."""
    reader = _Visible()
    try:
        reader.feed(html[:_READ])
        reader.close()
    except AssertionError:  # how html.parser reports a malformed declaration
        pass
    return _in_lines("".join(reader.parts))


class _Visible(HTMLParser):
    """Collects the text outside of what is never seen."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Stop at what is not seen; begin a line at a block."""
        if tag in _UNSEEN:
            self._inside.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """Go on after what is not seen."""
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep a text that is seen."""
        if not self._inside:
            self.parts.append(data)


def _without_secret_values(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "(JSON that cannot be read, not shown)" if text else ""
    return json.dumps(_masked(value), ensure_ascii=False)


def _masked(value: object, key: str = "") -> object:
    match value:
        case dict():
            return {name: _masked(inner, name) for name, inner in value.items()}
        case list():
            return [_masked(inner, key) for inner in value]
        case str() | int() if not isinstance(value, bool) and _SECRET_KEY.search(key):
            return MASK
    return value


def _in_lines(text: str) -> str:
    """Return the text without empty lines and with single blanks."""
    return "\n".join(line for line in (" ".join(raw.split()) for raw in text.splitlines()) if line)
