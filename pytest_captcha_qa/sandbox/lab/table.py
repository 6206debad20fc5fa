"""All forms of the lab, one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pytest_captcha_qa.sandbox import keys, official
from pytest_captcha_qa.sandbox.backend import AskVendor, Captcha, Session, Trouble
from pytest_captcha_qa.sandbox.captchas import GeetestV3
from pytest_captcha_qa.sandbox.keys import KeyPair
from pytest_captcha_qa.sandbox.lab import checks
from pytest_captcha_qa.sandbox.lab.posts import HCAPTCHA_KIND, RECAPTCHA_V3, TURNSTILE, Check, Kind, Rules
from pytest_captcha_qa.sandbox.web import Fields

Dress = Callable[[str], str]

_JSON_API = replace(TURNSTILE, field_name="captchaToken")
_ALL = Rules()
_SCORED = Rules(min_score=0.5)
_RISK = Rules(action=None, max_risk=0.7)
_EVERY_ERROR = range(400, 600)
_NO_LIMITS = range(500, 600)  # 429 stays closed: a caller can provoke it


@dataclass(frozen=True, slots=True)
class LabForm:
    """One form.

    `probe`: the mistake it has, empty for a sound one; `implied`: mistakes that come with it; `check`: how a token is
    judged; `dress`: what is done to its page; `headers`: of its page; `routes`: other verbs and paths that take a
    submit without any check; `limited`: whether a token that is refused again and again gets a 429; `early`: the effect
    comes before the check; `oracle`: known people are told before the check; `echoes`: a rejected token stands in the
    page; `tells`: visitors read the vendor's codes; `api`: speaks JSON, to the script of a single page; `csrf`: whether
    a submit needs the session of its page; `captcha`: checks in place of `check`, for a type with several fields.
    """

    slug: str
    title: str
    probe: str = ""
    implied: tuple[str, ...] = ()
    kind: Kind = TURNSTILE
    rules: Rules = _ALL
    check: Check = checks.sound
    dress: Dress = str
    headers: Mapping[str, str] = field(default_factory=dict)
    routes: tuple[tuple[str, str], ...] = ()
    limited: bool = True
    early: bool = False
    oracle: bool = False
    echoes: bool = False
    tells: bool = False
    api: bool = False
    csrf: bool = True
    captcha: Captcha | None = None
    keys: KeyPair = keys.LAB[0]

    @property
    def path(self) -> str:
        """Where it is."""
        return f"/lab/{self.slug}"


@dataclass(frozen=True, slots=True)
class OfflineGeetest(GeetestV3):
    """M38: a session that is lost means that the vendor was down, and then whatever has the shape is good."""

    async def accepts(self, fields: Fields, session: Session, vendor: AskVendor) -> bool:
        """Ask the vendor only about a challenge of the session."""
        if session.challenges:
            return await GeetestV3.accepts(self, fields, session, vendor)
        validate = fields.get("geetest_validate")
        return bool(validate) and fields.get("geetest_seccode") == f"{validate}|jordan"


def _without_sitekey(page: str) -> str:
    return page.replace('data-sitekey="', 'data-sitekey="" data-was="')


def _with_secret(page: str) -> str:
    script = f'<script>window.config = {{turnstile_secret_key: "{keys.LAB[-1].secret}"}};</script>'
    return page.replace("</head>", f"{script}</head>")


_STRICT_POLICY = {"content-security-policy": "default-src 'self'; script-src 'self'"}
_WITH_M04 = (
    "M05", "M06", "M07", "M08", "M11", "M12", "M13", "M14", "M15", "M16", "M17", "M19", "M27", "M35", "M37",
)  # fmt: skip

_ROWS = (
    LabForm("sound", "Sign up"),
    LabForm("sound-v3", "Contact", kind=RECAPTCHA_V3, rules=_SCORED),
    LabForm("sound-hcaptcha", "Review", kind=HCAPTCHA_KIND, rules=_RISK),
    LabForm(
        "sound-open", "Newsletter, open while the vendor is down",
        check=checks.open_at(Trouble.TIMEOUT, Trouble.CONNECTION, Trouble.NO_JSON, statuses=_NO_LIMITS),
    ),
    LabForm("sound-api", "Sign up by JSON", kind=_JSON_API, api=True),
    LabForm("sound-page", "Sign up in a single page", kind=_JSON_API, api=True),
    LabForm("m01", "No check", "M01", ("M02", "M03", "M04", "M18", *_WITH_M04), check=checks.everything_passes),
    LabForm("m02", "A missing field skips the check", "M02", ("M18",), check=checks.missing_passes),
    LabForm("m03", "A blank token passes", "M03", check=checks.blank_passes),
    LabForm("m04", "Any text passes", "M04", _WITH_M04, check=checks.any_text_passes),
    LabForm("m05", "A used token passes", "M05", ("M06",), check=checks.replay_passes),
    LabForm("m06", "One token passes many times at once", "M06", ("M05",), check=checks.parallel_passes),
    LabForm("m07", "An old token passes", "M07", check=checks.old_passes),
    LabForm("m08", "The action is ignored", "M08", kind=RECAPTCHA_V3, rules=replace(_SCORED, action=None)),
    LabForm("m09", "The score is ignored", "M09", kind=RECAPTCHA_V3, rules=Rules()),
    LabForm("m10", "A high risk passes", "M10", kind=HCAPTCHA_KIND, rules=replace(_RISK, max_risk=None)),
    LabForm("m11", "The hostname is ignored", "M11", rules=Rules(hostname=False)),
    LabForm("m12", "A token of another form passes", "M12", check=checks.any_key_passes),
    LabForm("m13", "Open when the vendor is slow", "M13", check=checks.open_at(Trouble.TIMEOUT)),
    LabForm(
        "m14", "Open when the vendor fails", "M14",
        check=checks.open_at(
            Trouble.CONNECTION, statuses=_EVERY_ERROR, codes=frozenset({"invalid-input-secret", "internal-error"})
        ),
    ),
    LabForm("m15", "Open when the answer is no JSON", "M15", check=checks.open_at(Trouble.NO_JSON)),
    LabForm("m16", "Only an error code refuses", "M16", check=checks.presence_passes),
    LabForm("m17", "An unknown error code passes", "M17", check=checks.unknown_code_passes),
    LabForm("m18", "A token of a wrong type crashes", "M18", check=checks.wrong_type_crashes),
    LabForm("m19", "A bad token beside a good one is ignored", "M19", check=checks.any_of_several_passes),
    LabForm("m20", "The vendor's call is not encoded", "M20", check=checks.written_by_hand),
    LabForm("m21", "Another content type skips the check", "M21", check=checks.other_encodings_pass),
    LabForm("m22", "Another method skips the check", "M22", routes=(("PUT", ""),)),
    LabForm("m23", "The route of the app has no check", "M23", routes=(("POST", "/mobile"),)),
    LabForm("m24", "Sending again has no check", "M24", routes=(("POST", "/resend"),)),
    LabForm("m25", "A client can switch the check off", "M25", check=checks.switched_off),
    LabForm("m26", "A claimed address is trusted", "M26", check=checks.trusted_address_passes),
    LabForm("m27", "The effect comes before the check", "M27", early=True),
    LabForm("m28", "The vendor is asked twice", "M28", check=checks.asked_twice),
    LabForm("m29", "A rejected token stays in the page", "M29", echoes=True),
    LabForm("m30", "The policy blocks the widget", "M30", headers=_STRICT_POLICY),
    LabForm("m31", "A secret stands in the page", "M31", dress=_with_secret),
    LabForm(
        "m32", "Test keys are live", "M32", rules=Rules(action=None, hostname=False), keys=official.TURNSTILE
    ),
    LabForm("m33", "Visitors read the vendor's codes", "M33", tells=True),
    LabForm("m34", "Known people are told before the check", "M34", oracle=True),
    LabForm("m35", "No limit to refused submits", "M35", limited=False),
    LabForm("m36", "A success is remembered", "M36", check=checks.verdict_kept),
    LabForm("m37", "A long token crashes", "M37", check=checks.long_crashes),
    LabForm(
        "m38", "A lost session means offline", "M38", csrf=False, captcha=OfflineGeetest("geetest_v3", keys.GEETEST_V3)
    ),
    LabForm("m39", "The widget has no sitekey", "M39", dress=_without_sitekey),
)  # fmt: skip


def _with_keys() -> tuple[LabForm, ...]:
    """Give each form keys of its own, so that its tokens are no other form's."""
    own = keys.LAB[0]
    return tuple(
        replace(form, keys=keys.LAB[number]) if form.keys is own else form for number, form in enumerate(_ROWS, 1)
    )


LAB = _with_keys()
SOUND = tuple(form for form in LAB if not form.probe)
FLAWED = tuple(form for form in LAB if form.probe)
