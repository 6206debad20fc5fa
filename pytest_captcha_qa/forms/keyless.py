"""The types without a sitekey: ALTCHA, whose challenge the site signs, and an image beside a field."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from pytest_captcha_qa.forms.linked import Linked
from pytest_captcha_qa.forms.markup import Markup
from pytest_captcha_qa.forms.outline import Element
from pytest_captcha_qa.forms.widget import Fields, Widget
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.token import TOKEN

LARGEST_IMAGE = 600_000
"""Bytes; no service takes more than 2captcha's 600 kB (reference/provider-protocol.md 2)."""
_LARGEST_CHALLENGE = 16_384
_IMAGE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a")
_INLINE = re.compile(r"data:", re.IGNORECASE)
_BLANKS = re.compile(rb"[\t\n\f\r ]+")
# Logos and badges of the services are no captchas.
_IMAGE_LOOK = re.compile(r"(?<!re)(?<!h)(?<!friendly)captcha|securimage|verif\w*[_-]?(?:code|image)", re.IGNORECASE)
_ANSWER_LOOK = re.compile(r"captcha|verif|secur|code|answer", re.IGNORECASE)
_TYPED = frozenset({"", "text", "search", "tel", "number"})


def find_altcha(markup: Markup) -> Iterator[Widget]:
    """Yield the `<altcha-widget>` elements; version 3 has one attribute for address and challenge."""
    for element in markup.root.iter("altcha-widget"):
        either = (element.get("challenge") or "").strip()
        inline = (element.get("challengejson") or "").strip() or (either if either.startswith("{") else "")
        address = (element.get("challengeurl") or "").strip() or ("" if either.startswith("{") else either)
        data = {"challenge_json": inline} if inline else {"challenge_url": address}
        name = (element.get("name") or "").strip() or None
        yield Widget(CaptchaType.ALTCHA, "", element, data=data, response_field=name)


def altcha_fields(widget: Widget, controls: tuple[str, ...]) -> Fields:
    """Return the field, which the widget may rename."""
    return {widget.response_field or "altcha": TOKEN}


def find_image(markup: Markup) -> Iterator[Widget]:
    """Yield the images that are called a captcha, each with the field of its form that takes what it shows."""
    for element in markup.root.iter("img"):
        if any(_IMAGE_LOOK.search(element.get(name) or "") for name in ("id", "class", "name", "alt", "src")):
            yield _image(element, markup)


def image_at(element: Element, markup: Markup) -> Widget | None:
    """Return the captcha that an image is, whatever it is called; None for any other element."""
    return _image(element, markup) if element.tag == "img" else None


def _image(element: Element, markup: Markup) -> Widget:
    source = (element.get("src") or "").strip()
    data = {"image" if _INLINE.match(source) else "image_url": source}
    return Widget(CaptchaType.IMAGE, "", element, data=data, response_field=_answer_field(element, markup))


def image_fields(widget: Widget, controls: tuple[str, ...]) -> Fields:
    """Return the field that takes the answer; its name is the site's own, so without one there is none."""
    return {widget.response_field: TOKEN} if widget.response_field else {}


def _answer_field(image: Element, markup: Markup) -> str | None:
    """Return the text field that looks like the answer's, None if there is none or nobody can tell."""
    form = markup.form_of(image)
    controls = markup.controls_of(form) if form is not None else []
    names = [
        control.get("name") or ""
        for control in controls
        if control.tag == "input" and (control.get("type") or "").strip().lower() in _TYPED and _looks(control)
    ]
    certain = [name for name in names if "captcha" in name.lower()] or names
    return certain[0] if len(set(certain)) == 1 else None


def _looks(control: Element) -> bool:
    return any(_ANSWER_LOOK.search(control.get(name) or "") for name in ("name", "id"))


def _read_challenge(body: bytes) -> str:
    """Return an ALTCHA challenge as JSON of its own. Raises ValueError."""
    try:
        told = json.loads(body)
        text = json.dumps(told, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise ValueError("is no ALTCHA challenge: it is no JSON object")
    return text


def _read_image(body: bytes) -> str:
    """Return an image in base64. Raises ValueError."""
    if not _IMAGE.match(body):
        raise ValueError("is no PNG, JPEG or GIF, so no service could read it")
    return base64.b64encode(body).decode()


def _read_inline_image(address: str) -> str:
    """Return the image in base64 that a `data:` address holds, read as browsers read one. Raises ValueError."""
    head, _, text = address.partition(",")
    body = unquote_to_bytes(text)
    if head.rstrip().lower().endswith(";base64"):
        bare = _BLANKS.sub(b"", body).rstrip(b"=")
        try:
            body = base64.b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
        except binascii.Error:
            raise ValueError("is no image in base64") from None
    if len(body) > LARGEST_IMAGE:
        raise ValueError("is larger than any service takes")
    return _read_image(body)


ALTCHA = Linked(
    address="challenge_url",
    into="challenge_json",
    called="challenge",
    accept="application/json",
    limit=_LARGEST_CHALLENGE,
    read=_read_challenge,
    check=lambda text: _read_challenge(text.encode(errors="replace")),
)
IMAGE = Linked(
    address="image_url",
    into="image",
    called="image",
    accept="image/png,image/jpeg,image/gif;q=0.9",
    limit=LARGEST_IMAGE,
    read=_read_image,
    check=_read_inline_image,
)
