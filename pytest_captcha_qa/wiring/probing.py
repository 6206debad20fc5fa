"""Joins the conformance probes with an engine."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_captcha_qa.conformance.catalogue import CATALOGUE
from pytest_captcha_qa.conformance.trial import Lab
from pytest_captcha_qa.engine.ports import GrantSource
from pytest_captcha_qa.engine.services import Services
from pytest_captcha_qa.engine.stop import Deadline
from pytest_captcha_qa.errors import UnknownName
from pytest_captcha_qa.model.form import FormSpec
from pytest_captcha_qa.model.probing import Severity
from pytest_captcha_qa.model.seen import SeenPage
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.model.waiver import Waiver
from pytest_captcha_qa.scope import TokenSource
from pytest_captcha_qa.wiring.engine import Engine
from pytest_captcha_qa.wiring.flows import PreparingDriver


def unusable_waivers(waivers: Iterable[Waiver]) -> list[str]:
    """Return in sentences which waivers are for a probe that does not exist, or that nobody may waive."""
    found = []
    for waiver in waivers:
        if waiver.probe is None:
            continue
        if waiver.probe not in CATALOGUE:
            where = f"the waiver of form {waiver.form!r}"
            found.append(f"waivers: {UnknownName.among('probe', waiver.probe, CATALOGUE, where=where).message}")
        elif CATALOGUE[waiver.probe].severity is Severity.CRITICAL:
            found.append(
                f"waivers: {waiver.probe} (form {waiver.form!r}) is critical; a critical probe is never waived"
            )
    return found


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
    scripted = engine.vendor(vendor) if has_one else None
    return Lab(new_services, look, session=setup.session, place=engine.place, vendor=scripted)
