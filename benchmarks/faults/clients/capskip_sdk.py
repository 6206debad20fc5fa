"""The official SDK of CapSkip. Its waits begin at a quarter of a second by themselves."""

from __future__ import annotations

import base64
import tempfile
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from capskip import CapSkip
from serving import serve


def _recaptcha(client: Any, job: Any, **options: Any) -> Any:
    return client.recaptcha(job["data"]["sitekey"], job["page"], **options)


def _image(client: Any, job: Any) -> Any:
    """Send the image as a file, as the SDK does with a path."""
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        file.write(base64.b64decode(job["data"]["image"]))
        file.flush()
        return client.normal(file.name)


SOLVERS = {
    "recaptcha_v2": _recaptcha,
    "recaptcha_v2_invisible": partial(_recaptcha, invisible=1),
    "recaptcha_v3": partial(_recaptcha, version="v3", action="contact"),
    "recaptcha_enterprise": partial(_recaptcha, enterprise=1),
    "turnstile": lambda client, job: client.turnstile(job["data"]["sitekey"], job["page"], action="login", data="c1"),
    "geetest_v3": lambda client, job: client.geetest(job["data"]["sitekey"], job["data"]["challenge"], job["page"]),
    "friendly_v2": lambda client, job: client.friendly_captcha(job["data"]["sitekey"], job["page"], version="v2"),
    "altcha": lambda client, job: client.altcha(job["page"], challenge_json=job["data"]["challenge_json"]),
    "image": _image,
}


def solve(job: Any) -> Any:
    """Return what the SDK calls the code."""
    place = urlsplit(job["http"])
    seconds = job["deadline"]
    client = CapSkip(job["key"], place.hostname, place.port, seconds, seconds, job["interval"])
    return SOLVERS[job["type"]](client, job)["code"]


if __name__ == "__main__":
    serve(solve, "capskip")
