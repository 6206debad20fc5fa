"""The services the sandbox can play: which types they take, by which verbs, with which keys, and how they answer.

The source of every entry is `provider-protocol.md`: endpoints and keys §1, types and shapes §2, actions §3. Where no
source says what a service answers to something it does not take, the sandbox answers ERROR_BAD_PARAMETERS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pytest_captcha_qa.sandbox.switches import Busy, Ids, Parts, Switches, Unknown, UserAgent, Waiting, Where

_ANY_VERB = frozenset({"GET", "POST"})
_POST = frozenset({"POST"})
_CLOUD_ACTIONS = frozenset({"get", "getbalance", "reportgood", "reportbad"})
_ALL_ACTIONS = _CLOUD_ACTIONS | {"get2", "threadsinfo"}

_PROXY_TYPES = frozenset({"HTTP", "HTTPS", "SOCKS4", "SOCKS5"})
_IMAGE_METHODS = ("post", "base64")
_RECAPTCHA = {
    "recaptcha_v2": ("userrecaptcha",),
    "recaptcha_v2_invisible": ("userrecaptcha",),
    "recaptcha_v3": ("userrecaptcha",),
    "recaptcha_enterprise": ("userrecaptcha",),
}
_COMMON = {
    **_RECAPTCHA,
    "turnstile": ("turnstile",),
    "geetest_v3": ("geetest",),
    "friendly_v2": ("friendly_captcha",),
    "image": _IMAGE_METHODS,
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One service.

    `takes`: the methods by which each type may be asked for; `key_length`: None for keys of any length;
    `by_type`: switches that differ for single types.
    """

    name: str
    takes: Mapping[str, tuple[str, ...]]
    actions: frozenset[str] = _ALL_ACTIONS
    submit_verbs: frozenset[str] = _ANY_VERB
    image_verbs: frozenset[str] = _POST
    """The verbs of the methods that carry an image."""
    result_verbs: frozenset[str] = _ANY_VERB
    key_length: int | None = 32
    proxy_types: frozenset[str] = _PROXY_TYPES
    """The kinds of proxies it solves through, in capitals; it reads them in any case."""
    has_balance: bool = True
    cross_origin: bool = False
    """Whether `header_acao=1` is answered with the header it asks for."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Codes the service has no use for, and what it sends instead."""
    usual: Switches = field(default_factory=Switches)
    by_type: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def accepts(self, type_: str, method: str, verb: str) -> bool:
        """Tell whether a type may be asked for by this method in a request of this verb."""
        verbs = self.image_verbs if method in _IMAGE_METHODS else self.submit_verbs
        return method in self.takes.get(type_, ()) and verb in verbs

    def solves_through(self, proxy_type: str) -> bool:
        """Tell whether it takes this kind of proxy, or none."""
        return not proxy_type or proxy_type.upper() in self.proxy_types

    def switches(self, type_: str = "") -> Switches:
        """Return what is usual for a type."""
        return replace(self.usual, **self.by_type.get(type_, {}))


def _for_each(types: Mapping[str, Any], **switches: Any) -> dict[str, dict[str, Any]]:
    return {type_: dict(switches) for type_ in types}


_PLAIN_RECAPTCHA = [type_ for type_ in _RECAPTCHA if type_ != "recaptcha_enterprise"]

# CaptchaAI sends numbers as ids for `userrecaptcha` only (Doc); an Enterprise token is in `result` (its SDK).
_CAPTCHAAI_BY_TYPE: dict[str, dict[str, Any]] = {
    **{type_: {"ids": Ids.INTEGER} for type_ in _PLAIN_RECAPTCHA},
    "recaptcha_enterprise": {"ids": Ids.INTEGER, "answer_in": Where.RESULT, "user_agent": UserAgent.SNAKE},
}

SANDBOX = Dialect(
    "sandbox",
    takes={
        **_COMMON,
        "hcaptcha": ("hcaptcha",),
        "geetest_v4": ("geetest", "geetest_v4"),
        "altcha": ("altcha",),
    },
    image_verbs=_ANY_VERB,
    cross_origin=True,
    by_type=_for_each(_RECAPTCHA, ids=Ids.INTEGER),
)
CAPTCHAAI = Dialect(
    "captchaai",
    takes={**_COMMON, "hcaptcha": ("hcaptcha",), "geetest_v4": ("geetest",)},
    actions=_CLOUD_ACTIONS | {"threadsinfo"},
    # The older page says 100 bytes to 100 kB.
    usual=Switches(parts=Parts.MIXED, image_least=1024, image_most=1024 * 1024),
    renamed={"ERROR_TOKEN_EXPIRED": "ERROR_CAPTCHA_UNSOLVABLE"},
    by_type=_CAPTCHAAI_BY_TYPE,
)
CAPSKIP = Dialect(
    "capskip",
    takes={**_COMMON, "altcha": ("altcha",)},
    actions=frozenset({"get"}),
    submit_verbs=_POST,
    result_verbs=frozenset({"GET"}),
    key_length=None,
    proxy_types=frozenset({"HTTP", "HTTPS", "SOCKS5", "SOCKS5H"}),
    has_balance=False,
    renamed={
        "ERROR_TOKEN_EXPIRED": "ERROR_CAPTCHA_UNSOLVABLE",
        "ERROR_WRONG_GOOGLEKEY": "ERROR_GOOGLEKEY",
        "ERROR_UPLOAD": "ERROR_INVALID_IMAGE",
        "ERROR_ZERO_CAPTCHA_FILESIZE": "ERROR_INVALID_IMAGE",
        "ERROR_IMAGE_TYPE_NOT_SUPPORTED": "ERROR_INVALID_IMAGE",
        "ERROR_IMAGE_DIMENSIONS_TOO_LARGE": "ERROR_INVALID_IMAGE",
    },
    usual=Switches(
        parts=Parts.JSON,
        prefixed=True,
        waiting=Waiting.EMPTY_FIRST,
        unknown_id=Unknown.EMPTY,
        read_once=True,
        when_busy=Busy.QUEUE,
    ),
    by_type={
        "turnstile": {"user_agent": UserAgent.LOWER},
        "friendly_v2": {"with_solution": True},
        "altcha": {"with_solution": True},
    },
)
TWOCAPTCHA = Dialect(
    "twocaptcha",
    takes={
        **_COMMON,
        "hcaptcha": ("hcaptcha",),
        "geetest_v4": ("geetest_v4",),
        "altcha": ("altcha",),
    },
    actions=_CLOUD_ACTIONS | {"get2"},
    cross_origin=True,
    usual=Switches(parts=Parts.OBJECT, when_busy=Busy.NO_SLOT, image_least=100, image_most=600_000),
    by_type={"turnstile": {"user_agent": UserAgent.LOWER}},
)
DIALECTS: Mapping[str, Dialect] = MappingProxyType({it.name: it for it in (SANDBOX, CAPTCHAAI, CAPSKIP, TWOCAPTCHA)})


def dialect_of_key(key: str) -> Dialect:
    """Return the dialect a key is answered in unless it is told otherwise: the one its beginning names, or our own.

    So `capskip` (what CapSkip's SDK sends by default) and `twocaptcha-anything` are well-known keys.
    """
    return next((dialect for name, dialect in DIALECTS.items() if key.startswith(name)), SANDBOX)
