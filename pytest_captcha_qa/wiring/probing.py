"""Joins the conformance probes with an engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.trial import Lab
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.model.form import Challenge, FormSpec
from pytest_captcha_qa.model.probing import Severity
from pytest_captcha_qa.model.seen import SeenPage
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.provider.standin import StandIn
from pytest_captcha_qa.scope import ScopeGrant, TokenSource
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.flows import PreparingDriver
from pytest_captcha_qa.wiring.providers import stand_in_of


def unusable_waivers(waivers: Iterable[Waiver]) -> list[str]:
    """Return in sentences which waivers are for a probe that does not exist, or that nobody may waive."""
    found = []
    for waiver in waivers:
        if waiver.probe is None:
            continue
        if waiver.probe not in CATALOGUE:
            found.append(f"waivers: there is no probe {waiver.probe} (form {waiver.form!r}) in this version")
        elif CATALOGUE[waiver.probe].severity is Severity.CRITICAL:
            found.append(
                f"waivers: {waiver.probe} (form {waiver.form!r}) is critical; a critical probe is never waived"
            )
    return found


class LearningVendor:
    """The stand-in, whose tokens are masked from the moment they are made."""

    def __init__(self, stand_in: StandIn, engine: Engine) -> None:
        """Keep both."""
        self._stand_in = stand_in
        self._engine = engine

    def issue(self, challenge: Challenge, grant: ScopeGrant, *, age: float, outcome: Mapping[str, Any]) -> Solution:
        """Return a new token about which the stand-in will answer like this; see `StandIn.issue`."""
        issued = self._stand_in.issue(challenge, grant, age=age, outcome=outcome)
        self._engine.learn(issued.solution.secrets)
        return issued.solution

    def calls(self, after: int) -> list[Mapping[str, Any]]:
        """Return the log after an entry's number."""
        return self._stand_in.calls(after)

    def mark(self, text: str) -> int:
        """Put a mark into the log."""
        return self._stand_in.mark(text)


def lab_of(engine: Engine, vendor: Url | None = None) -> Lab:
    """Return what the probes of this process need, all of it with the engine's grants and limits.

    `vendor`: where the stand-in is, when that is not the account's address.
    """

    def new_services() -> Services:
        return engine.services(session=engine.new_session())

    def look(form: FormSpec, deadline: Deadline) -> SeenPage:
        driver = PreparingDriver(engine.site, engine.new_session)
        grants: GrantSource = engine.grants
        return driver.look(form, engine.environment.page_of(form.slug), grants, deadline, engine.new_identity())

    setup, environment = engine.setup, engine.environment
    has_one = vendor is not None or environment.account.source is TokenSource.STANDIN
    stand_in = LearningVendor(stand_in_of(environment, vendor), engine) if has_one else None
    owner = f"{setup.worker or 'main'} {os.getpid()}"
    return Lab(new_services, look, session=setup.session, owner=owner, vendor=stand_in)
