"""The release under test, as the site itself tells it."""

from __future__ import annotations

import json

from pytest_captcha_qa.config.resolved import EnvironmentConfig, ReleaseFrom
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import CaptchaQAError
from pytest_captcha_qa.model.form import Answer
from pytest_captcha_qa.transport import ANSWER_LIMIT, HttpClient, Reply

_SECONDS = 10.0
_MOST_CHARACTERS = 100


def release_of(environment: EnvironmentConfig, client: HttpClient, grants: GrantSource) -> str | None:
    """Return the release that was given, else what the site answers; None if it is not to be had.

    What keeps the site from answering, a refusal by scope too, ends every attempt on its forms and is told there.
    """
    if environment.release is not None or environment.release_from is None:
        return environment.release
    source = environment.release_from
    url = environment.base_url.join(source.path)
    deadline = Deadline(_SECONDS, what="the question for the release")
    try:
        grant = grants.grant(url)
        reply = client.request("GET", url, deadline=deadline, grant=grant, limit=ANSWER_LIMIT)
    except CaptchaQAError:
        return None
    return _read(source, reply) if reply.status == 200 else None


def _read(source: ReleaseFrom, reply: Reply) -> str | None:
    if source.header is not None:
        value: object = reply.headers.get(source.header)
    elif source.json is not None:
        value = Answer(reply.status, reply.url, text=reply.text).json_value(source.json)[1]
    else:
        value = reply.text.strip()
    if value is None or value == "":
        return None
    return (value if isinstance(value, str) else json.dumps(value))[:_MOST_CHARACTERS]
