"""What came back of one request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.model.url import Url, UrlRefused
from pytest_captcha_qa.transport.retry_after import seconds_to_wait

# Names of real character sets only: Python also knows codecs that are none, and some take quadratic time.
_CHARSET = re.compile(
    r"(?:utf-?8|utf-?16(?:le|be)?|us-ascii|ascii|latin-?1|iso-?8859-\d{1,2}|(?:windows|cp)-?\d{3,4}|koi8-[ru]"
    r"|shift[_-]jis|sjis|euc-(?:jp|kr)|iso-2022-jp|gb2312|gbk|gb18030|big5)\Z",
    re.IGNORECASE,
)
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_IN_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_META_WINDOW = 2048


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request: `url` is the one that was asked, `body` is decoded (gzip, deflate).

    `headers` finds names in any case; repeated ones are joined by a comma.
    """

    status: int
    url: Url
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def location(self) -> str | None:
        """The redirect target as it was sent, relative or not; None if the status is no redirect."""
        return self.headers.get("Location") if 300 <= self.status < 400 else None

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; empty if none was sent."""
        return self.headers.get("Content-Type", "").split(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The character set of the header, else of a byte order mark, else of a `<meta>`, else UTF-8."""
        told = _IN_HEADER.search(self.headers.get("Content-Type", ""))
        if told and _CHARSET.match(told.group(1)):
            return told.group(1)
        if self.body.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "utf-16"
        meta = _IN_META.search(self.body[:_META_WINDOW])
        named = meta.group(1).decode("ascii", "replace") if meta else ""
        return named if _CHARSET.match(named) else "utf-8"

    @property
    def text(self) -> str:
        """The body as text; what cannot be decoded becomes U+FFFD."""
        try:
            text = self.body.decode(self.charset, "replace")
        except LookupError:
            text = self.body.decode("utf-8", "replace")
        return text.removeprefix("\ufeff")

    @property
    def answer(self) -> Answer:
        """What a form's rules judge of it; a redirect target that is no canonical URL counts as none."""
        pause = seconds_to_wait(self.headers.get("Retry-After", ""))
        return Answer(self.status, self.url, self._target(), self.content_type, self.text, pause)

    def _target(self) -> Url | None:
        if self.location is None:
            return None
        try:
            return self.url.join(self.location)
        except UrlRefused:
            return None
