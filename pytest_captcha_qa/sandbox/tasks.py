"""How each captcha type is asked for at `in.php`: one row a type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pytest_captcha_qa.sandbox import altcha
from pytest_captcha_qa.sandbox.binding import Binding
from pytest_captcha_qa.sandbox.web import Fields


class Refused(Exception):
    """The service answers with an error code; `as_text` also where JSON was asked for."""

    def __init__(self, code: str, *, as_text: bool = False) -> None:
        """Keep the code."""
        super().__init__(code)
        self.code = code
        self.as_text = as_text


@dataclass(frozen=True, slots=True)
class TaskRule:
    """How one captcha type is asked for: its method, the names of its parameters, what a wrong one is called.

    An empty parameter name means that the type has no such parameter.
    """

    type: str
    method: str
    sitekey: str = ""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values by which types of one method are told apart; an absent parameter is empty."""
    sitekey_pattern: str = r"[\w-]{16,100}"
    missing_sitekey: str = "ERROR_BAD_PARAMETERS"
    bad_sitekey: str = "ERROR_BAD_PARAMETERS"
    action: str = ""
    default_action: str = ""
    cdata: str = ""
    challenge: str = ""
    puzzle: str = ""
    """A challenge that itself decides its answer."""
    solve: Callable[[str], str] = str
    """Returns the answer to the puzzle. Raises Refused."""
    has_page: bool = True

    def fits(self, fields: Fields) -> bool:
        """Tell whether a submit asks for this type."""
        return fields.get("method") == self.method and all(
            fields.get(name) in values for name, values in self.needs.items()
        )

    def binding(self, fields: Fields, page: str) -> Binding:
        """Return what the token will be bound to. Raises Refused."""
        return Binding(
            type=self.type,
            sitekey=self._sitekey(fields),
            page=page,
            action=_optional(fields, self.action) or self.default_action,
            cdata=_optional(fields, self.cdata),
            challenge=_required(fields, self.challenge),
            answer=self.solve(_required(fields, self.puzzle)),
        )

    def _sitekey(self, fields: Fields) -> str:
        if not self.sitekey:
            return ""
        if self.sitekey not in fields:
            raise Refused(self.missing_sitekey)
        sitekey = fields.get(self.sitekey)
        if not re.fullmatch(self.sitekey_pattern, sitekey, re.ASCII):
            raise Refused(self.bad_sitekey)
        return sitekey


def _optional(fields: Fields, name: str) -> str:
    return fields.get(name) if name else ""


def _required(fields: Fields, name: str) -> str:
    value = _optional(fields, name)
    if name and not value:
        raise Refused("ERROR_BAD_PARAMETERS")
    return value


def _solve_altcha(text: str) -> str:
    try:
        challenge = json.loads(text)
    except (ValueError, RecursionError):
        challenge = None
    if not isinstance(challenge, dict):
        raise Refused("ERROR_BAD_PARAMETERS")
    try:
        return altcha.solved(challenge)
    except altcha.Unsolvable as exc:
        raise Refused("ERROR_CAPTCHA_UNSOLVABLE") from exc


_OFF = ("", "0")
_userrecaptcha = partial(
    TaskRule,
    method="userrecaptcha",
    sitekey="googlekey",
    missing_sitekey="ERROR_WRONG_GOOGLEKEY",
    bad_sitekey="ERROR_GOOGLEKEY",
)
_geetest_v4 = partial(TaskRule, "geetest_v4", sitekey_pattern=r"[0-9a-f]{32}")

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
    _userrecaptcha("recaptcha_enterprise", needs={"enterprise": ("1",)}, action="action"),
    TaskRule("turnstile", method="turnstile", sitekey="sitekey", action="action", cdata="data"),
    TaskRule(
        "geetest_v3",
        method="geetest",
        sitekey="gt",
        needs={"version": ("", "3", "v3")},
        sitekey_pattern=r"[0-9a-f]{32}",
        challenge="challenge",
    ),
    # CaptchaAI sends the id of v4 as `gt`, 2captcha has a method of its own for it.
    _geetest_v4(method="geetest", sitekey="gt", needs={"version": ("4", "v4")}),
    _geetest_v4(method="geetest_v4", sitekey="captcha_id"),
    TaskRule("hcaptcha", method="hcaptcha", sitekey="sitekey"),
    TaskRule("friendly_v2", method="friendly_captcha", sitekey="sitekey", needs={"version": ("2", "v2")}),
    TaskRule("altcha", method="altcha", puzzle="challenge_json", solve=_solve_altcha),
    TaskRule("image", method="base64", has_page=False),
    TaskRule("image", method="post", has_page=False),
)


def rule_for(fields: Fields) -> TaskRule:
    """Return how the type this submit asks for is read. Raises Refused."""
    for rule in RULES:
        if rule.fits(fields):
            return rule
    raise Refused("ERROR_BAD_PARAMETERS")
