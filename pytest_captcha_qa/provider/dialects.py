"""What each solving service calls things, as data: methods and parameters by type, addresses, habits.

Source of every entry: `provider-protocol.md` (transport §1, methods §2, actions §3, times §5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import TOKEN
from pytest_captcha_qa.provider.codes import CAPSKIP_CODES, CODES, TWOCAPTCHA_CODES, Code
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

    `first`: seconds before the first poll of a task, as the service's own client waits; `parts`: names of the values a
    solution has; `free_text`: the answer may hold spaces and any script; `mark`: what the sandbox's tokens carry;
    `proxied`: whether it can be solved through a proxy of the team's.
    """

    name: str
    parameters: tuple[Parameter, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    first: float = 10.0
    parts: tuple[str, ...] = (TOKEN,)
    free_text: bool = False
    mark: Mark | None = None
    proxied: bool = True


class Report(StrEnum):
    """What a service may be told about a token after its verification."""

    GOOD = "reportgood"
    BAD = "reportbad"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One service.

    `base_url`: its fixed address, None where the team says it; `key_length`: exact length of a key, None for any, an
    empty one included; `interval`: seconds between two polls of a task; `result_verb`, `result_action`: how a result is
    asked for; `proxy_types`: kinds of proxies it solves through; `reports`: what it takes; `silent`: whether an empty
    answer to a poll means that it has nothing to say about the task yet; `local`: whether it is an app on a machine of
    the team's, which may not be running.
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
    result_verb: str = "POST"
    result_action: str = "get"
    proxy_types: frozenset[str] = frozenset()
    reports: frozenset[Report] = frozenset()
    silent: bool = False
    local: bool = False

    @property
    def has_prices(self) -> bool:
        """Whether a result comes with its price."""
        return self.result_action == "get2"

    @property
    def types(self) -> tuple[CaptchaType, ...]:
        """The types it solves."""
        return tuple(kind for kind, method in self.methods.items() if method is not None)


def _page(challenge: Challenge) -> str:
    return challenge.page.without_query


def _min_score(challenge: Challenge) -> str | None:
    return None if challenge.min_score is None else f"{challenge.min_score:g}"


def _datum(name: str) -> Callable[[Challenge], str | None]:
    return lambda challenge: challenge.data.get(name)


def _image(challenge: Challenge) -> str | None:
    """Return the image as bare base64, which is what the services take."""
    text = challenge.data.get("image", "")
    return text.partition(",")[2] if text.startswith("data:") else text


def _version(challenge: Challenge) -> str | None:
    """Return the version of an Enterprise key that scores, None for a checkbox."""
    return challenge.data.get("version") or (None if challenge.min_score is None else "v3")


_PAGE = Parameter("pageurl", _page, required=True)
_SITEKEY = Parameter("sitekey", lambda challenge: challenge.sitekey, required=True)
_GOOGLEKEY = replace(_SITEKEY, name="googlekey")
_GT = replace(_SITEKEY, name="gt")
_ACTION = Parameter("action", lambda challenge: challenge.action)
_CDATA = Parameter("data", lambda challenge: challenge.cdata)
_SCORE = Parameter("min_score", _min_score)
_CHALLENGE = Parameter("challenge", _datum("challenge"), required=True)
_CHALLENGE_JSON = Parameter("challenge_json", _datum("challenge_json"), required=True)
_BODY = Parameter("body", _image, required=True)
_VERSION = Parameter("version", _version)
_INVISIBLE = Parameter("invisible", _datum("invisible"))

_V2 = Method("userrecaptcha", (_GOOGLEKEY, _PAGE), first=15.0)
_V2_INVISIBLE = replace(_V2, fixed=(("invisible", "1"),))
_V3 = Method("userrecaptcha", (_GOOGLEKEY, _PAGE, _ACTION, _SCORE), (("version", "v3"),))
# The page tells whether its key is one with a score, or the team does by a `min_score`; such a key is solved in another
# way. CaptchaAI takes an action of a checkbox too, its `sa` value.
_ENTERPRISE = replace(
    _V2,
    fixed=(("enterprise", "1"),),
    parameters=(_GOOGLEKEY, _PAGE, _VERSION, _INVISIBLE, _ACTION, _SCORE),
)
_ENTERPRISE_EXACT = replace(
    _ENTERPRISE,
    parameters=(
        _GOOGLEKEY,
        _PAGE,
        _VERSION,
        replace(_INVISIBLE, source=lambda challenge: None if _version(challenge) else challenge.data.get("invisible")),
        replace(_ACTION, source=lambda challenge: challenge.action if _version(challenge) else None),
        _SCORE,
    ),
)
_TURNSTILE = Method("turnstile", (_SITEKEY, _PAGE, _ACTION, _CDATA))
_GEETEST = Method("geetest", (_GT, _CHALLENGE, _PAGE), first=15.0, parts=("challenge", "validate", "seccode"))
_GEETEST_V4 = Method(
    "geetest", (_GT, _PAGE), (("version", "4"),), 15.0,
    parts=("lot_number", "pass_token", "gen_time", "captcha_output", "captcha_id"),
)  # fmt: skip
_HCAPTCHA = Method("hcaptcha", (_SITEKEY, _PAGE), first=15.0)
_FRIENDLY = Method("friendly_captcha", (_SITEKEY, _PAGE), (("version", "v2"),))
# The challenge itself, never its address: nobody but us asks the site for it.
_ALTCHA = Method("altcha", (_PAGE, _CHALLENGE_JSON), first=1.0, proxied=False)
_IMAGE = Method("base64", (_BODY,), first=1.0, free_text=True, proxied=False)

_CAPTCHAAI_METHODS: Mapping[CaptchaType, Method | None] = MappingProxyType(
    {
        CaptchaType.RECAPTCHA_V2: _V2,
        CaptchaType.RECAPTCHA_V2_INVISIBLE: _V2_INVISIBLE,
        CaptchaType.RECAPTCHA_V3: _V3,
        CaptchaType.RECAPTCHA_ENTERPRISE: _ENTERPRISE,
        # The SDK exposes neither `action` nor `data` here; the other client sends `action`. Without them the token of a
        # widget that has them would be refused by the site.
        CaptchaType.TURNSTILE: _TURNSTILE,
        CaptchaType.HCAPTCHA: None,  # an example exists, the SDK has none: nothing to promise
        CaptchaType.GEETEST_V3: _GEETEST,
        CaptchaType.GEETEST_V4: _GEETEST_V4,
        CaptchaType.FRIENDLY_V2: _FRIENDLY,
        CaptchaType.ALTCHA: None,
        CaptchaType.IMAGE: _IMAGE,
    }
)
_CAPSKIP_METHODS: Mapping[CaptchaType, Method | None] = MappingProxyType(
    {
        CaptchaType.RECAPTCHA_V2: replace(_V2, first=2.0),
        CaptchaType.RECAPTCHA_V2_INVISIBLE: replace(_V2_INVISIBLE, first=2.0),
        CaptchaType.RECAPTCHA_V3: replace(_V3, first=2.0),
        CaptchaType.RECAPTCHA_ENTERPRISE: replace(_ENTERPRISE_EXACT, first=2.0),
        CaptchaType.TURNSTILE: replace(_TURNSTILE, first=2.0),
        CaptchaType.HCAPTCHA: None,  # ruled out by its documentation
        CaptchaType.GEETEST_V3: replace(_GEETEST, first=2.0),  # the slide puzzle only
        CaptchaType.GEETEST_V4: None,
        CaptchaType.FRIENDLY_V2: replace(_FRIENDLY, first=2.0),
        CaptchaType.ALTCHA: replace(_ALTCHA, first=0.25),
        CaptchaType.IMAGE: replace(_IMAGE, first=0.25),
    }
)
_TWOCAPTCHA_METHODS: Mapping[CaptchaType, Method | None] = MappingProxyType(
    {
        CaptchaType.RECAPTCHA_V2: _V2,
        CaptchaType.RECAPTCHA_V2_INVISIBLE: _V2_INVISIBLE,
        CaptchaType.RECAPTCHA_V3: replace(_V3, proxied=False),
        CaptchaType.RECAPTCHA_ENTERPRISE: _ENTERPRISE_EXACT,
        CaptchaType.TURNSTILE: replace(_TURNSTILE, first=5.0),
        CaptchaType.HCAPTCHA: None,  # gone from its documentation
        CaptchaType.GEETEST_V3: _GEETEST,
        CaptchaType.GEETEST_V4: replace(
            _GEETEST_V4, name="geetest_v4", fixed=(), parameters=(replace(_GT, name="captcha_id"), _PAGE)
        ),
        CaptchaType.FRIENDLY_V2: None,  # only version 1 is documented
        CaptchaType.ALTCHA: replace(_ALTCHA, first=5.0),  # known from its SDK only
        CaptchaType.IMAGE: replace(_IMAGE, first=5.0),
    }
)

# The sandbox puts these marks into its tokens, so that none of them can be taken for a real one (R0.3).
_STRING_MARK = "c4ptchaqaSANDBOX"
_HEX_MARK = "5a9db0c4ca7a"
_ALTCHA_MARK = "eyJtYXJrIjoiYzRwdGNoYXFhU0FOREJPWCIs"  # base64 of {"mark":"c4ptchaqaSANDBOX",
_RECAPTCHA_MARK = Mark(TOKEN, "03AFcWeA" + _STRING_MARK)
_SANDBOX_METHODS: Mapping[CaptchaType, Method | None] = MappingProxyType(
    {
        CaptchaType.RECAPTCHA_V2: replace(_V2, mark=_RECAPTCHA_MARK),
        CaptchaType.RECAPTCHA_V2_INVISIBLE: replace(_V2, fixed=(("invisible", "1"),), mark=_RECAPTCHA_MARK),
        CaptchaType.RECAPTCHA_V3: replace(_V3, mark=_RECAPTCHA_MARK),
        CaptchaType.RECAPTCHA_ENTERPRISE: replace(_ENTERPRISE, mark=_RECAPTCHA_MARK),
        CaptchaType.TURNSTILE: replace(_TURNSTILE, mark=Mark(TOKEN, "0." + _STRING_MARK)),
        CaptchaType.HCAPTCHA: replace(_HCAPTCHA, mark=Mark(TOKEN, "P1_" + _STRING_MARK)),
        CaptchaType.GEETEST_V3: replace(_GEETEST, mark=Mark("validate", _HEX_MARK)),
        CaptchaType.GEETEST_V4: replace(_GEETEST_V4, mark=Mark("lot_number", _HEX_MARK)),
        CaptchaType.FRIENDLY_V2: replace(_FRIENDLY, mark=Mark(TOKEN, "AQQA." + _STRING_MARK)),
        CaptchaType.ALTCHA: replace(_ALTCHA, mark=Mark(TOKEN, _ALTCHA_MARK)),
        CaptchaType.IMAGE: replace(_IMAGE, mark=Mark(TOKEN, "QATEST")),
    }
)

_PROXY_TYPES = frozenset({"HTTP", "HTTPS", "SOCKS4", "SOCKS5"})
CAPTCHAAI = Dialect(
    name="captchaai",
    source=TokenSource.LIVE,
    base_url="https://ocr.captchaai.com",
    key_length=32,
    methods=_CAPTCHAAI_METHODS,
    codes=CODES,
    proxy_types=_PROXY_TYPES,
    reports=frozenset({Report.BAD}),
)
CAPSKIP = Dialect(
    name="capskip",
    source=TokenSource.LIVE,
    base_url=None,
    key_length=None,
    methods=_CAPSKIP_METHODS,
    codes=CAPSKIP_CODES,
    interval=2.0,
    has_balance=False,
    has_threads=False,
    result_verb="GET",
    proxy_types=frozenset({"HTTP", "HTTPS", "SOCKS5", "SOCKS5H"}),
    silent=True,
    local=True,
)
TWOCAPTCHA = Dialect(
    name="twocaptcha",
    source=TokenSource.LIVE,
    base_url="https://2captcha.com",
    key_length=32,
    methods=_TWOCAPTCHA_METHODS,
    codes=TWOCAPTCHA_CODES,
    has_threads=False,
    result_action="get2",
    proxy_types=_PROXY_TYPES,
    reports=frozenset(Report),
)
SANDBOX = Dialect(
    name="sandbox",
    source=TokenSource.SANDBOX,
    base_url=None,
    key_length=32,
    methods=_SANDBOX_METHODS,
    codes=CODES,
)
DIALECTS: Mapping[str, Dialect] = MappingProxyType({it.name: it for it in (CAPTCHAAI, CAPSKIP, TWOCAPTCHA, SANDBOX)})
"""The services by the name an account gives as its `provider`."""


def unsolved(dialect: Dialect, kind: CaptchaType) -> str:
    """Return the sentence about a type that the service does not solve; it names those that do."""
    others = [name for name, other in DIALECTS.items() if kind in other.types]
    known = f"use an account of {' or '.join(others)}" if others else "no provider here does"
    return f"{dialect.name} does not solve {kind}: {known}"
