"""The session that many tests share: one login for each run, form and set of fields, its cookies kept in the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.sharing import SharedLogin
from pytest_captcha_qa.model.attempt import AttemptRequest
from pytest_captcha_qa.transport import HttpClient, KeptCookie
from pytest_captcha_qa.wiring.engine import Engine


def shared_cookies(
    engine: Engine, form: str, fields: Mapping[str, str], remember: Callable[[Services], Services]
) -> tuple[KeptCookie, ...]:
    """Return the cookies that the login on a form left, whichever process of the run made it.

    `remember` puts the caller's ear to the services of the login's attempt.

    Raises:
        CaptchaQAError: why it failed, the same for every caller.
    """
    client = engine.new_session()
    request = AttemptRequest(form, _subject(engine, fields))
    services = remember(engine.services(session=client))
    login = SharedLogin(request, services, fields=fields, session=lambda: _written(client))
    return _read(login.session())


def _subject(engine: Engine, fields: Mapping[str, str]) -> str:
    """Return what tells this login from those of other runs and of other people; fields may hold a password."""
    person = hashlib.sha256(json.dumps(sorted(fields.items())).encode()).hexdigest()
    return f"session of run {engine.setup.run_id} {engine.setup.session} {person}"


def _written(client: HttpClient) -> str:
    return json.dumps([cookie.to_json() for cookie in client.kept_cookies()])


def _read(session: str) -> tuple[KeptCookie, ...]:
    return tuple(KeptCookie.from_json(raw) for raw in json.loads(session))
