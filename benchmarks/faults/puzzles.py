"""What a page with a captcha shows, for each type: the data of a job."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pytest_captcha_qa.sandbox import altcha, pictures

_SITEKEY = "6LcSANDBOXv2sitekeyAAAAAAAAAAAAAAAAAAAAA"
_HEX_ID = "5a9db0c4ca7a00000000000000000001"


def _site() -> dict[str, Any]:
    return {"sitekey": _SITEKEY}


def _geetest_v3() -> dict[str, Any]:
    return {"sitekey": _HEX_ID, "challenge": secrets.token_hex(16)}


def _altcha() -> dict[str, Any]:
    return {"challenge_json": altcha.new_challenge("a key of the site", expires=time.time() + 600)}


def _image() -> dict[str, Any]:
    return {"image": base64.b64encode(pictures.drawn(pictures.new_text())).decode()}


PUZZLES: Mapping[str, Callable[[], dict[str, Any]]] = MappingProxyType(
    {
        "recaptcha_v2": _site,
        "recaptcha_v2_invisible": _site,
        "recaptcha_v3": _site,
        "recaptcha_enterprise": _site,
        "turnstile": _site,
        "hcaptcha": _site,
        "geetest_v3": _geetest_v3,
        "geetest_v4": lambda: {"sitekey": _HEX_ID},
        "friendly_v2": _site,
        "altcha": _altcha,
        "image": _image,
    }
)
_MARKS = ("c4ptchaqaSANDBOX", "5a9db0c4ca7a", "eyJtYXJrIjoi", "QATEST")


def is_marked(token: Any) -> bool:
    """Tell whether a token is one of the sandbox's."""
    return any(mark in str(token) for mark in _MARKS)
