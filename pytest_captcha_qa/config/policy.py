"""The table `policy` of a form: what the team has decided, so that no conformance probe calls it a mistake."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

from pytest_captcha_qa.config.rules import path_or_url
from pytest_captcha_qa.config.table import Number, Table, Text, Yes
from pytest_captcha_qa.model.probing import Fault, ProbePolicy


class PolicyTable(Table):
    """What probes take for decided: a grace, sibling routes, sitekeys that forms share, payments in test mode."""

    grace: Yes = False
    siblings: tuple[Annotated[str, AfterValidator(path_or_url)], ...] = ()
    flow: tuple[Annotated[str, AfterValidator(path_or_url)], ...] = ()
    sitekey_group: Text | None = None
    payment_test_mode: Yes = False
    open_for: tuple[Fault, ...] = ()
    own_hostname_check: Yes = False
    risk_score: Yes = False
    least_score: Annotated[Number, Field(gt=0, le=1)] | None = None

    def faults(self) -> Iterable[tuple[str, str]]:
        """Yield an address that is listed twice."""
        yield from super().faults()
        for key, addresses in (("siblings", self.siblings), ("flow", self.flow)):
            for place, address in enumerate(addresses):
                if address in addresses[:place]:
                    yield f"{key}.{place}", f"is listed twice: {address}"

    def policy(self) -> ProbePolicy:
        """Return the policy as the probes know it."""
        return ProbePolicy(**self.model_dump())
