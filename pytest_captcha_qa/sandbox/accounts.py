"""The keys of the solving service: what an account has, which dialect it speaks, and where it departs from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from pytest_captcha_qa.sandbox.described import DescriptionProblem, build, checked
from pytest_captcha_qa.sandbox.dialects import DIALECTS, Dialect, dialect_of_key
from pytest_captcha_qa.sandbox.switches import Switches
from pytest_captcha_qa.sandbox.tasks import Refused

UNKNOWN_KEY = "0" * 32
"""The one key of the right length that does not exist."""

_OTHER_SPELLINGS = MappingProxyType(
    {"IP_BANNED": "ERROR_IP_BANNED", "ERROR_REPORT_NOT_RECORDED": "REPORT_NOT_RECORDED"}
)
_SWITCH_NAMES = frozenset(spec.name for spec in fields(Switches))


@dataclass(frozen=True, slots=True)
class KeyState:
    """What an account has.

    `dialect` empty: the one the key's beginning names; `refused`: the code it is refused by; `without`: types that its
    service does not take after all, separated by commas, since sources disagree about some.
    """

    balance: float = 10.0
    threads: int = 100
    dialect: str = ""
    refused: str = ""
    without: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Switches that differ from the dialect's."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> KeyState:
        """Return the account a JSON object describes: its members and switches together. Raises DescriptionProblem."""
        own = {name: value for name, value in data.items() if name not in _SWITCH_NAMES}
        if "given" in own:
            raise DescriptionProblem("there is no 'given' here; switches stand beside the others")
        state = build(cls, own)
        if state.dialect and state.dialect not in DIALECTS:
            raise DescriptionProblem(f"there is no dialect {state.dialect!r}, only {', '.join(DIALECTS)}")
        given = checked(Switches, {name: value for name, value in data.items() if name in _SWITCH_NAMES})
        return replace(state, given=given)


@dataclass(frozen=True, slots=True)
class Account:
    """One key as the service knows it."""

    key: str = field(repr=False)
    state: KeyState
    configured: bool = False
    """Whether the key was set up over the control endpoint; such a key may have any length."""

    @property
    def dialect(self) -> Dialect:
        """The dialect the key is answered in."""
        return DIALECTS[self.state.dialect] if self.state.dialect else dialect_of_key(self.key)

    def switches(self, type_: str = "") -> Switches:
        """Return the switches that hold for tasks of a type, or for answers about none."""
        return replace(self.dialect.switches(type_), **self.state.given)

    def takes(self, type_: str, method: str, verb: str, proxy_type: str) -> bool:
        """Tell whether the service takes a type by this method and verb, solved through this kind of proxy if any."""
        known = type_ not in self.state.without.split(",") and self.dialect.accepts(type_, method, verb)
        return known and self.dialect.solves_through(proxy_type)

    def spelled(self, code: str) -> str:
        """Return an error code as the service spells it."""
        named = self.dialect.renamed.get(code, code)
        return _OTHER_SPELLINGS.get(named, named) if self.switches().older_codes else named

    def check(self) -> None:
        """Return quietly if the key is good. Raises Refused."""
        if self.state.refused:
            raise Refused(self.state.refused)
        length = self.dialect.key_length
        if length is not None and len(self.key) != length and not self.configured:
            raise Refused("ERROR_WRONG_USER_KEY")
        if self.key == UNKNOWN_KEY:
            raise Refused("ERROR_KEY_DOES_NOT_EXIST")


def account(key: str, keys: Mapping[str, KeyState]) -> Account:
    """Return the account of a key, be it set up or not."""
    return Account(key, keys.get(key, KeyState()), configured=key in keys)
