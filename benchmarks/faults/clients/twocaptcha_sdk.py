"""The official SDK of 2captcha. It speaks https only; the authority to trust comes by REQUESTS_CA_BUNDLE."""

from __future__ import annotations

import base64
import json
import tempfile
from functools import partial
from typing import Any

from serving import serve
from twocaptcha import TwoCaptcha


def _recaptcha(client: Any, job: Any, **options: Any) -> Any:
    return client.recaptcha(job["data"]["sitekey"], job["page"], **options)


def _with_sitekey(client: Any, job: Any, name: str, **options: Any) -> Any:
    return getattr(client, name)(job["data"]["sitekey"], job["page"], **options)


def _image(client: Any, job: Any) -> Any:
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        file.write(base64.b64decode(job["data"]["image"]))
        file.flush()
        return client.normal(file.name, numeric=4, minLength=1, caseSensitive=1)


def _altcha(client: Any, job: Any) -> Any:
    """Tell the challenge by its address where the job has one, else as text."""
    told = job["data"]
    if "challenge_url" in told:
        return client.altcha(job["page"], challenge_url=told["challenge_url"])
    return client.altcha(job["page"], challenge_json=json.dumps(told["challenge_json"]))


SOLVERS = {
    "recaptcha_v2": _recaptcha,
    "recaptcha_v2_invisible": partial(_recaptcha, invisible=1),
    "recaptcha_v3": partial(_recaptcha, version="v3", action="contact", score=0.3),
    "recaptcha_enterprise": partial(_recaptcha, enterprise=1),
    "turnstile": partial(_with_sitekey, name="turnstile", action="login", data="c1"),
    "hcaptcha": partial(_with_sitekey, name="hcaptcha"),
    "geetest_v3": lambda client, job: client.geetest(job["data"]["sitekey"], job["data"]["challenge"], job["page"]),
    "geetest_v4": partial(_with_sitekey, name="geetest_v4"),
    "friendly_v2": partial(_with_sitekey, name="friendly_captcha", version="v2"),
    "altcha": _altcha,
    "image": _image,
}


def solve(job: Any) -> Any:
    """Return what the SDK calls the code."""
    seconds = job["deadline"]
    client = TwoCaptcha(
        job["key"],
        server=job["https"].removeprefix("https://"),
        defaultTimeout=seconds,
        recaptchaTimeout=seconds,
        pollingInterval=max(1, round(job["interval"])),  # it takes whole seconds, and 0 is a busy loop
    )
    return SOLVERS[job["type"]](client, job)["code"]


if __name__ == "__main__":
    serve(solve, "twocaptcha")
