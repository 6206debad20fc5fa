"""Images that are submitted to the solving service: where they stand in a submit, and which of them it refuses."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pytest_captcha_qa.sandbox import pictures
from pytest_captcha_qa.sandbox.switches import Switches
from pytest_captcha_qa.sandbox.tasks import Refused
from pytest_captcha_qa.sandbox.web import Fields

_LONGEST_SIDE = 1000
_PNG, _JPEG, _GIF = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", (b"GIF87a", b"GIF89a")


def _from_file(fields: Fields) -> bytes:
    """Return the uploaded file. Raises Refused."""
    upload = fields.files.get("file")
    if upload is None:
        raise Refused("ERROR_BAD_PARAMETERS")
    return upload.content


def _from_body(fields: Fields) -> bytes:
    """Return the image in `body`: bare base64, without the head of a data URL. Raises Refused."""
    if not fields.get("body"):
        raise Refused("ERROR_BAD_PARAMETERS")
    try:
        return base64.b64decode(fields.get("body"), validate=True)
    except (binascii.Error, ValueError):
        raise Refused("ERROR_UPLOAD") from None


READERS: Mapping[str, Callable[[Fields], bytes]] = MappingProxyType({"post": _from_file, "base64": _from_body})
"""How the image of a submit is found, by its method."""


def image_of(fields: Fields, switches: Switches) -> bytes | None:
    """Return the image of a submit, None for a method that has none.

    Raises Refused: it is no image, or one of a wrong size.
    """
    reader = READERS.get(fields.get("method"))
    if reader is None:
        return None
    content = reader(fields)
    if len(content) < switches.image_least:
        raise Refused("ERROR_ZERO_CAPTCHA_FILESIZE")
    if len(content) > switches.image_most:
        raise Refused("ERROR_TOO_BIG_CAPTCHA_FILESIZE")
    _check_sides(content)
    return content


def text_of(image: bytes) -> str:
    """Return what an image of the sandbox shows. Raises Refused for any other."""
    text = pictures.read(image)
    if not text:
        raise Refused("ERROR_CAPTCHAIMAGE_BLOCKED")
    return text


def _check_sides(content: bytes) -> None:
    if content.startswith(_PNG) and len(content) >= 24:
        sides = struct.unpack(">II", content[16:24])
    elif content.startswith(_GIF) and len(content) >= 10:
        sides = struct.unpack("<HH", content[6:10])
    elif content.startswith(_JPEG):
        return
    else:
        raise Refused("ERROR_IMAGE_TYPE_NOT_SUPPORTED")
    if max(sides) > _LONGEST_SIDE:
        raise Refused("ERROR_IMAGE_DIMENSIONS_TOO_LARGE")
