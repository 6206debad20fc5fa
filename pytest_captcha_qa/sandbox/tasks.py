"""How each captcha type is asked for at `in.php`: one row a type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from pytest_captcha_qa.sandbox.tokens import Binding
from pytest_captcha_qa.sandbox.web import Fields


class Refused(Exception):
    """The service answers with an error code."""

    def __init__(self, code: str) -> None:
        """Keep the code."""
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class TaskRule:
    """How one captcha type is asked for: its method, the names of its parameters, what a wrong one is called.

    An empty parameter name means that the type has no such parameter.
    """

    type: str
    method: str
    sitekey: str
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values by which types of one method are told apart; an absent parameter is empty."""
    sitekey_pattern: str = r"[\w-]{16,100}"
    missing_sitekey: str = "ERROR_BAD_PARAMETERS"
    bad_sitekey: str = "ERROR_BAD_PARAMETERS"
    action: str = ""
    default_action: str = ""
    cdata: str = ""
    challenge: str = ""
    integer_id: bool = False
    """Whether the id is a number in JSON; CaptchaAI does this for `userrecaptcha` only."""

    def fits(self, fields: Fields) -> bool:
        """Tell whether a submit asks for this type."""
        return fields.get("method") == self.method and all(
            fields.get(name) in values for name, values in self.needs.items()
        )

    def binding(self, fields: Fields, page: str) -> Binding:
        """Return what the token will be bound to. Raises Refused."""
        sitekey = fields.get(self.sitekey)
        if self.sitekey not in fields:
            raise Refused(self.missing_sitekey)
        if not re.fullmatch(self.sitekey_pattern, sitekey, re.ASCII):
            raise Refused(self.bad_sitekey)
        challenge = _optional(fields, self.challenge)
        if self.challenge and not challenge:
            raise Refused("ERROR_BAD_PARAMETERS")
        return Binding(
            type=self.type,
            sitekey=sitekey,
            page=page,
            action=_optional(fields, self.action) or self.default_action,
            cdata=_optional(fields, self.cdata),
            challenge=challenge,
        )


def _optional(fields: Fields, name: str) -> str:
    return fields.get(name) if name else ""


_OFF = ("", "0")
_userrecaptcha = partial(
    TaskRule,
    method="userrecaptcha",
    sitekey="googlekey",
    missing_sitekey="ERROR_WRONG_GOOGLEKEY",
    bad_sitekey="ERROR_GOOGLEKEY",
    integer_id=True,
)

RULES = (
    _userrecaptcha(
        "recaptcha_v3",
        needs={"version": ("v3",), "enterprise": _OFF},
        action="action",
        default_action="verify",
    ),
    _userrecaptcha(
        "recaptcha_v2",
        needs={"version": ("", "v2"), "enterprise": _OFF, "invisible": _OFF},
    ),
    _userrecaptcha(
        "recaptcha_v2_invisible",
        needs={"version": ("", "v2"), "enterprise": _OFF, "invisible": ("1",)},
    ),
    TaskRule("turnstile", method="turnstile", sitekey="sitekey", action="action", cdata="data"),
    TaskRule(
        "geetest_v3",
        method="geetest",
        sitekey="gt",
        needs={"version": ("", "3", "v3")},
        sitekey_pattern=r"[0-9a-f]{32}",
        challenge="challenge",
    ),
)


def rule_for(fields: Fields) -> TaskRule:
    """Return how the type this submit asks for is read. Raises Refused."""
    for rule in RULES:
        if rule.fits(fields):
            return rule
    raise Refused("ERROR_BAD_PARAMETERS")
