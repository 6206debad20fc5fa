"""The official SDK of CaptchaAI. Its waits (1 to 15 s before the first poll, then 5 s) and its 180 s cannot be set."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

from captchaai import CaptchaAI
from serving import serve


def _recaptcha(client: Any, job: Any, **options: Any) -> Any:
    return client.recaptcha_v2(job["data"]["sitekey"], job["page"], **options)


def _v3(client: Any, job: Any, **options: Any) -> Any:
    return client.recaptcha_v3(job["data"]["sitekey"], job["page"], action="contact", min_score=0.3, **options)


def _image(job: Any) -> bytes:
    # Longer base64 than a file may have in its name ends the SDK with an OSError; bytes are fine.
    return base64.b64decode(job["data"]["image"])


SOLVERS = {
    "recaptcha_v2": _recaptcha,
    "recaptcha_v2_invisible": partial(_recaptcha, invisible=True),
    "recaptcha_v3": _v3,
    "recaptcha_enterprise": partial(_recaptcha, enterprise=True),
    "turnstile": lambda client, job: client.turnstile(job["data"]["sitekey"], job["page"]),
    "geetest_v3": lambda client, job: client.geetest(job["data"]["sitekey"], job["data"]["challenge"], job["page"]),
    "friendly_v2": lambda client, job: client.friendly_captcha(job["data"]["sitekey"], job["page"], version="v2"),
    "image": lambda client, job: client.normal(_image(job), numeric=0, case_sensitive=0),
}


def solve(job: Any) -> Any:
    """Return what the SDK calls the solution."""
    client = CaptchaAI(job["key"], base_url=job["http"])
    try:
        return SOLVERS[job["type"]](client, job).solution
    finally:
        client.close()


if __name__ == "__main__":
    serve(solve, "captchaai")
