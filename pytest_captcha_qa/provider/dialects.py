"""What each solving service calls things, as data: methods and parameters by type, error codes, addresses.

Source of every entry: `provider-protocol.md` (methods §2, codes §4, times §5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pytest_captcha_qa.errors import (
    BalanceExhausted,
    CaptchaQAError,
    KeyRejected,
    ProviderBusy,
    ProviderUnavailable,
    RequestRejected,
    TaskUnknown,
    Unsolvable,
)
from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.policy import Reaction
from pytest_captcha_qa.model.token import TOKEN
from pytest_captcha_qa.scope import TokenSource


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a submit and where its value comes from; left out when there is none."""

    name: str
    source: Callable[[Challenge], str | None]
    required: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """By what a token of the sandbox is known: the part that starts with `head`."""

    part: str
    head: str


@dataclass(frozen=True, slots=True)
class Method:
    """How one captcha type is asked for.

    `first`: seconds before the first poll of a task, as CaptchaAI's own client waits; `parts`: names of the values a
    solution has; `free_text`: the answer may hold spaces and any script; `mark`: what the sandbox's tokens carry.
    """

    name: str
    parameters: tuple[Parameter, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    first: float = 10.0
    parts: tuple[str, ...] = (TOKEN,)
    free_text: bool = False
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means, in words that end a sentence, and what to do; `pause`: seconds before that."""

    reaction: Reaction
    meaning: str
    pause: float | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One service.

    `base_url`: its fixed address, None where the team says it; `key_length`: exact length of a key, None for
    any; `interval`: seconds between two polls of a task.
    """

    name: str
    source: TokenSource
    base_url: str | None
    key_length: int | None
    methods: Mapping[CaptchaType, Method | None]
    codes: Mapping[str, Code]
    interval: float = 5.0
    has_balance: bool = True
    has_threads: bool = True

    @property
    def types(self) -> tuple[CaptchaType, ...]:
        """The types it solves."""
        return tuple(kind for kind, method in self.methods.items() if method is not None)


ERRORS: Mapping[Reaction, type[CaptchaQAError] | None] = MappingProxyType(
    {
        Reaction.POLL_ON: None,
        Reaction.RETRY: ProviderUnavailable,
        Reaction.REQUEUE: ProviderBusy,
        Reaction.CHECK_BALANCE: BalanceExhausted,
        Reaction.OUT_OF_MONEY: BalanceExhausted,
        Reaction.DROP: TaskUnknown,
        Reaction.ONCE_MORE: Unsolvable,
        Reaction.FAIL: RequestRejected,
        Reaction.STOP: KeyRejected,
    }
)
"""The error each reaction is told by; None where the code is no error."""

# A paid task must not be lost because the service asks to slow down while it is polled (R3.2).
POLL_ERRORS: Mapping[Reaction, type[CaptchaQAError] | None] = MappingProxyType(
    {**ERRORS, Reaction.REQUEUE: ProviderUnavailable}
)


def _page(challenge: Challenge) -> str:
    return challenge.page.without_query


def _min_score(challenge: Challenge) -> str | None:
    return None if challenge.min_score is None else f"{challenge.min_score:g}"


def _datum(name: str) -> Callable[[Challenge], str | None]:
    return lambda challenge: challenge.data.get(name)


_PAGE = Parameter("pageurl", _page, required=True)
_SITEKEY = Parameter("sitekey", lambda challenge: challenge.sitekey, required=True)
_GOOGLEKEY = replace(_SITEKEY, name="googlekey")
_GT = replace(_SITEKEY, name="gt")
_ACTION = Parameter("action", lambda challenge: challenge.action)
_CDATA = Parameter("data", lambda challenge: challenge.cdata)
_SCORE = Parameter("min_score", _min_score)
_CHALLENGE = Parameter("challenge", _datum("challenge"), required=True)
_BODY = Parameter("body", _datum("image"), required=True)

_V2 = Method("userrecaptcha", (_GOOGLEKEY, _PAGE), first=15.0)
_V3 = Method("userrecaptcha", (_GOOGLEKEY, _PAGE, _ACTION, _SCORE), (("version", "v3"),))
# CaptchaAI's SDK exposes neither `action` nor `data` here; its other client sends `action`. Without them the
# token of a widget that has them would be refused by the site.
_TURNSTILE = Method("turnstile", (_SITEKEY, _PAGE, _ACTION, _CDATA))
_GEETEST = Method("geetest", (_GT, _CHALLENGE, _PAGE), first=15.0, parts=("challenge", "validate", "seccode"))
_GEETEST_V4_PARTS = ("captcha_id", "lot_number", "pass_token", "gen_time", "captcha_output")

_CAPTCHAAI_METHODS: Mapping[CaptchaType, Method | None] = MappingProxyType(
    {
        CaptchaType.RECAPTCHA_V2: _V2,
        CaptchaType.RECAPTCHA_V2_INVISIBLE: replace(_V2, fixed=(("invisible", "1"),)),
        CaptchaType.RECAPTCHA_V3: _V3,
        CaptchaType.RECAPTCHA_ENTERPRISE: replace(
            _V2, fixed=(("enterprise", "1"),), parameters=(_GOOGLEKEY, _PAGE, _ACTION)
        ),
        CaptchaType.TURNSTILE: _TURNSTILE,
        CaptchaType.HCAPTCHA: None,  # an example exists, the SDK has none: nothing to promise
        CaptchaType.GEETEST_V3: _GEETEST,
        CaptchaType.GEETEST_V4: Method("geetest", (_GT, _PAGE), (("version", "4"),), 15.0, parts=_GEETEST_V4_PARTS),
        CaptchaType.FRIENDLY_V2: Method("friendly_captcha", (_SITEKEY, _PAGE), (("version", "v2"),)),
        CaptchaType.ALTCHA: None,
        CaptchaType.IMAGE: Method("base64", (_BODY,), first=1.0, free_text=True),
    }
)

# The sandbox puts these marks into its tokens, so that none of them can be taken for a real one (R0.3).
_STRING_MARK = "c4ptchaqaSANDBOX"
_RECAPTCHA_MARK = Mark(TOKEN, "03AFcWeA" + _STRING_MARK)
_SANDBOX_METHODS: Mapping[CaptchaType, Method | None] = MappingProxyType(
    {
        CaptchaType.RECAPTCHA_V2: replace(_V2, mark=_RECAPTCHA_MARK),
        CaptchaType.RECAPTCHA_V2_INVISIBLE: replace(_V2, fixed=(("invisible", "1"),), mark=_RECAPTCHA_MARK),
        CaptchaType.RECAPTCHA_V3: replace(_V3, mark=_RECAPTCHA_MARK),
        CaptchaType.RECAPTCHA_ENTERPRISE: None,
        CaptchaType.TURNSTILE: replace(_TURNSTILE, mark=Mark(TOKEN, "0." + _STRING_MARK)),
        CaptchaType.HCAPTCHA: None,
        CaptchaType.GEETEST_V3: replace(_GEETEST, mark=Mark("validate", "5a9db0c4ca7a")),
        CaptchaType.GEETEST_V4: None,
        CaptchaType.FRIENDLY_V2: None,
        CaptchaType.ALTCHA: None,
        CaptchaType.IMAGE: None,
    }
)

_SUBMIT_CODES: Mapping[str, Code] = {
    "ERROR_WRONG_USER_KEY": Code(Reaction.STOP, "the key does not have the form of a key"),
    "ERROR_KEY_DOES_NOT_EXIST": Code(Reaction.STOP, "the key is unknown, or its account has no plan"),
    "ERROR_ZERO_BALANCE": Code(Reaction.CHECK_BALANCE, "the account has no free thread or no plan"),
    "ERROR_NO_SLOT_AVAILABLE": Code(Reaction.REQUEUE, "it has no free slot", 5.0),
    "MAX_USER_TURN": Code(Reaction.REQUEUE, "there were too many submits in three seconds", 10.0),
    "ERROR_TOO_MUCH_REQUESTS": Code(Reaction.REQUEUE, "there were too many requests", 5.0),
    "ERROR: 1001": Code(Reaction.REQUEUE, "it blocks this account for ten minutes: no free slots", 600.0),
    "ERROR: 1002": Code(Reaction.OUT_OF_MONEY, "it blocks this account for five minutes: no balance", 300.0),
    "ERROR: 1003": Code(Reaction.REQUEUE, "too many tasks wait in its queue", 30.0),
    "ERROR: 1004": Code(Reaction.STOP, "it blocks this address for ten minutes: wrong keys were sent"),
    "ERROR: 1005": Code(Reaction.REQUEUE, "there were too many polls", 300.0),
    "IP_BANNED": Code(Reaction.STOP, "this address is banned after too many wrong keys"),
    "ERROR_IP_BANNED": Code(Reaction.STOP, "this address is banned after too many wrong keys"),
    "ERROR_IP_NOT_ALLOWED": Code(Reaction.STOP, "this address is not on the account's list of addresses"),
    "ERROR_PAGEURL": Code(Reaction.FAIL, "the page address is missing or refused"),
    "ERROR_GOOGLEKEY": Code(Reaction.FAIL, "the sitekey is malformed"),
    "ERROR_WRONG_GOOGLEKEY": Code(Reaction.FAIL, "the sitekey is missing"),
    "ERROR_BAD_TOKEN_OR_PAGEURL": Code(Reaction.FAIL, "the sitekey does not belong to the page"),
    "ERROR_DOMAIN_NOT_ALLOWED": Code(Reaction.FAIL, "it does not serve this page"),
    "ERROR_BAD_PARAMETERS": Code(Reaction.FAIL, "a parameter is missing or malformed"),
    "ERROR_ZERO_CAPTCHA_FILESIZE": Code(Reaction.FAIL, "the image is too small"),
    "ERROR_TOO_BIG_CAPTCHA_FILESIZE": Code(Reaction.FAIL, "the image is too large"),
    "ERROR_IMAGE_DIMENSIONS_TOO_LARGE": Code(Reaction.FAIL, "the sides of the image are too long"),
    "ERROR_WRONG_FILE_EXTENSION": Code(Reaction.FAIL, "the image has an extension it does not take"),
    "ERROR_IMAGE_TYPE_NOT_SUPPORTED": Code(Reaction.FAIL, "the image is of a type it does not take"),
    "ERROR_UPLOAD": Code(Reaction.FAIL, "the image could not be read"),
    "ERROR_INVALID_IMAGE": Code(Reaction.FAIL, "the image could not be read"),
    "ERROR_CAPTCHAIMAGE_BLOCKED": Code(Reaction.FAIL, "the image is known as unreadable"),
    "TOO_MANY_BAD_IMAGES": Code(Reaction.STOP, "the account sent too many unreadable images"),
    "ERROR_PROXY_FORMAT": Code(Reaction.FAIL, "the account's proxy is malformed"),
    "ERROR_BAD_PROXY": Code(Reaction.FAIL, "the account's proxy is marked as bad"),
    "ERROR_SERVER_ERROR": Code(Reaction.RETRY, "it has a passing fault", 10.0),
    "ERROR_INTERNAL_SERVER_ERROR": Code(Reaction.RETRY, "it has a passing fault", 10.0),
}
_RESULT_CODES: Mapping[str, Code] = {
    "CAPCHA_NOT_READY": Code(Reaction.POLL_ON, "it is still solving"),
    "ERROR_CAPTCHA_UNSOLVABLE": Code(Reaction.ONCE_MORE, "it gave up on the challenge"),
    "ERROR_WRONG_ID_FORMAT": Code(Reaction.FAIL, "the task id is malformed"),
    "ERROR_WRONG_CAPTCHA_ID": Code(Reaction.DROP, "it does not know the task"),
    "ERROR_EMPTY_ACTION": Code(Reaction.FAIL, "the action is missing"),
    "ERROR_PROXY_CONNECTION_FAILED": Code(Reaction.ONCE_MORE, "it could not reach the account's proxy"),
    "ERROR_BAD_DUPLICATES": Code(Reaction.ONCE_MORE, "its workers found no agreement"),
    # A new task with the same challenge would fail in the same way.
    "ERROR_TOKEN_EXPIRED": Code(Reaction.FAIL, "the page's challenge was used before; open the page again"),
    "ERROR_REPORT_NOT_RECORDED": Code(Reaction.FAIL, "the report came too late or is one of too many"),
    "REPORT_NOT_RECORDED": Code(Reaction.FAIL, "the report came too late or is one of too many"),
    "ERROR_DUPLICATE_REPORT": Code(Reaction.FAIL, "the task was reported before"),
    "ERROR_IP_ADDRES": Code(Reaction.FAIL, "the pingback was registered from another address"),
}
CODES: Mapping[str, Code] = MappingProxyType({**_SUBMIT_CODES, **_RESULT_CODES})
"""All codes of the protocol. CaptchaAI's meaning stands where the services differ (ERROR_ZERO_BALANCE)."""

CAPTCHAAI = Dialect(
    name="captchaai",
    source=TokenSource.LIVE,
    base_url="https://ocr.captchaai.com",
    key_length=32,
    methods=_CAPTCHAAI_METHODS,
    codes=CODES,
)
SANDBOX = Dialect(
    name="sandbox",
    source=TokenSource.SANDBOX,
    base_url=None,
    key_length=32,
    methods=_SANDBOX_METHODS,
    codes=CODES,
)
DIALECTS: Mapping[str, Dialect] = MappingProxyType({it.name: it for it in (CAPTCHAAI, SANDBOX)})
"""The services by the name an account gives as its `provider`."""
