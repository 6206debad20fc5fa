"""The release under test, as the site itself tells it."""

from __future__ import annotations

import json
import re

from pytest_captcha_qa.config.resolved import EnvironmentConfig, ReleaseFrom
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError
from pytest_captcha_qa.model.answer import Answer
from pytest_captcha_qa.transport import ANSWER_LIMIT, HttpClient, Reply

_SECONDS = 10.0
# It goes to records, terminals and reports: no control character, no line break, nothing that only looks like ASCII.
_RELEASE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,98}[\x21-\x7e])?\Z")


def release_of(environment: EnvironmentConfig, client: HttpClient, grants: GrantSource) -> str | None:
    """Return the release that was given, else what the site answers; None if it is not to be had.

    What keeps the site from answering, a refusal by scope too, ends every attempt on its forms and is told there.

    Raises:
        ConfigError: the release that was given is no name of one.
    """
    if environment.release is not None:
        return _given(environment)
    return _asked(environment, environment.release_from, client, grants) if environment.release_from else None


def _given(environment: EnvironmentConfig) -> str | None:
    release = (environment.release or "").strip()
    if release and not _RELEASE.match(release):
        reference = environment.release_ref if environment.given_release is None else None
        said = reference.named if reference is not None else "--captcha-release or CAPTCHA_QA_RELEASE"
        raise ConfigError(
            f"the release under test that {said} gives for {environment.name} cannot be used: a release has at most "
            "100 printable ASCII characters"
        )
    return release or None


def _asked(environment: EnvironmentConfig, source: ReleaseFrom, client: HttpClient, grants: GrantSource) -> str | None:
    url = environment.base_url.join(source.path)
    deadline = Deadline(_SECONDS, what="the question for the release")
    try:
        grant = grants.grant(url)
        reply = client.request("GET", url, deadline=deadline, grant=grant, limit=ANSWER_LIMIT)
    except CaptchaQAError:
        return None
    return _read(source, reply) if reply.status == 200 else None


def _read(source: ReleaseFrom, reply: Reply) -> str | None:
    """Return the release an answer names; None where what stands there is no name of one."""
    if source.json is not None:
        value = Answer(reply.status, reply.url, text=reply.text).json_value(source.json)
    else:
        value = reply.headers.get(source.header or "")
    release = (value if isinstance(value, str) else json.dumps(value)).strip()
    return release if value is not None and _RELEASE.match(release) else None
