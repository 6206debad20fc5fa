"""What the form's page shows; nothing is sent but GET requests for it and its own scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_captcha_qa.conformance.csp import NEEDED, blocked
from pytest_captcha_qa.conformance.judge import Judged, inconclusive, not_applicable
from pytest_captcha_qa.conformance.probe import Family, Probe
from pytest_captcha_qa.conformance.trial import MADE_UP, Trial
from pytest_captcha_qa.model.attempt import KeyMode
from pytest_captcha_qa.model.captcha import CaptchaType, is_test_sitekey, official_secrets
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.probing import ProbeVerdict, Severity
from pytest_captcha_qa.model.seen import SeenPage

# reference/verification.md 1.5: where each vendor's script comes from; a page may also bundle it.
_SCRIPTS: Mapping[CaptchaType, tuple[str, ...] | None] = {
    CaptchaType.RECAPTCHA_V2: ("/recaptcha/api.js", "/recaptcha/enterprise.js"),
    CaptchaType.RECAPTCHA_V2_INVISIBLE: ("/recaptcha/api.js", "/recaptcha/enterprise.js"),
    CaptchaType.RECAPTCHA_V3: ("/recaptcha/api.js", "/recaptcha/enterprise.js"),
    CaptchaType.RECAPTCHA_ENTERPRISE: ("/recaptcha/enterprise.js",),
    CaptchaType.TURNSTILE: ("challenges.cloudflare.com/turnstile/",),
    CaptchaType.HCAPTCHA: ("hcaptcha.com/1/api.js", "js.hcaptcha.com"),
    CaptchaType.GEETEST_V3: ("gt.js", "initGeetest"),
    CaptchaType.GEETEST_V4: ("gt4.js", "initGeetest4"),
    CaptchaType.FRIENDLY_V2: ("friendly", "site.min.js"),
    CaptchaType.ALTCHA: ("altcha",),
    CaptchaType.IMAGE: None,
}
_NO_KEYS = frozenset({"", "undefined", "null", "none", "your_site_key", "your-site-key", "changeme"})

# Names under which build tools put a variable into the bundle, with a value beside it.
_NAMED = re.compile(
    r"(?:NEXT_PUBLIC|VITE|REACT_APP|NUXT_PUBLIC|PUBLIC|GATSBY)_\w*(?:CAPTCHA|TURNSTILE)\w*SECRET\w*"
    r"|(?:re|h)?captcha_?secret(?:_?key)?|turnstile_?secret(?:_?key)?",
    re.IGNORECASE,
)
_VALUE = re.compile(r"""["']?\s*[:=]\s*["']([A-Za-z0-9_-]{20,80})["']""")
# Shapes that are a secret's and never a sitekey's: Turnstile's 35 characters, hCaptcha's ES_. Its older 0x and 40
# digits are an address of Ethereum's, too, so that they need a word beside them.
_SHAPES = re.compile(r"(?<![\w-])(?:0x4[A-Za-z0-9_-]{32}|ES_[0-9a-f]{32})(?![\w-])")
_AMBIGUOUS = re.compile(r"0x[0-9a-fA-F]{40}")
_SPOKEN_OF = re.compile(r"(?:secret|captcha)[^<>\n]{0,40}?(?<![\w-])0x[0-9a-fA-F]{40}(?![\w-])", re.IGNORECASE)
_WINDOW = 120

# reference/verification.md 1.3: codes that are the vendor's and nothing else's.
_CODES = re.compile(
    r"(?:missing|invalid)-input-(?:secret|response)|timeout-or-duplicate|sitekey-secret-mismatch"
    r"|not-using-dummy-\w+|(?:already-seen|expired|invalid-or-already-seen)-(?:input-)?response"
)
_VERIFIES = re.compile(
    r"/recaptcha/api/siteverify|/turnstile/v0/siteverify|hcaptcha\.com/siteverify|api/v2/captcha/siteverify"
)
_TRACE = re.compile(r"Traceback \(most recent call last\)|Stack trace:\s*#0|at Object\.<anonymous>")


def csp(trial: Trial) -> Judged:
    """Compare the page's policies with what the widget loads."""
    seen, kind = trial.seen(), trial.form.type
    if NEEDED[kind] is None:
        return not_applicable(f"what a policy must allow for {kind} is not documented")
    if not seen.policies:
        return _safe(seen, "the page has no content security policy")
    lacking = [one for policy in seen.policies for one in blocked(policy, kind, str(seen.url))]
    if lacking:
        return _unsafe(
            seen, f"the page's content security policy blocks the widget: {', '.join(dict.fromkeys(lacking))}"
        )
    return _safe(seen, "the page's content security policy lets the widget load")


def secret_shown(trial: Trial) -> Judged:
    """Look for secrets in the page and its own scripts; a value is never repeated."""
    seen = trial.seen()
    for where, text in (("the page", seen.text), *((address, text) for address, text in seen.bundles)):
        if (what := next(_secrets_in(text, set(seen.sitekeys)), None)) is not None:
            return _unsafe(seen, f"{where} holds {what}")
    return _safe(seen, f"no secret in the page and {len(seen.bundles)} scripts of its own")


def _secrets_in(text: str, sitekeys: set[str | None]) -> Iterator[str]:
    if any(secret in text for secret in official_secrets() if not _AMBIGUOUS.fullmatch(secret)):
        yield "an official test secret"
    if _SPOKEN_OF.search(text) or any(match.group() not in sitekeys for match in _SHAPES.finditer(text)):
        yield "a text of the shape of a vendor's secret"
    for match in _NAMED.finditer(text):
        value = _VALUE.match(text, match.end(), match.end() + _WINDOW)
        if value is not None and value.group(1) not in sitekeys:
            yield "a value that is called a captcha secret"


def test_keys(trial: Trial) -> Judged:
    """Compare the sitekeys with the official test keys."""
    seen = trial.seen()
    found = [key for key in seen.sitekeys if key and is_test_sitekey(key)]
    if not found:
        return _safe(seen, "no official test key on the page")
    if trial.kind is EnvKind.PRODUCTION or trial.key_mode is KeyMode.LIVE:
        return _unsafe(seen, f"{trial.kind} shows an official test key, with which everybody passes")
    return _safe(seen, f"an official test key, which is in order on {trial.kind}")


test_keys.__test__ = False  # type: ignore[attr-defined]  # its name begins like that of a test


def detail_shown(trial: Trial) -> Judged:
    """Look for vendor codes, verification addresses and stack traces in the page and in its answer to a bad token."""
    seen = trial.seen()
    texts = [("the page", seen.text)]
    if not trial.read_only:
        refused = trial.post("a made-up token", lambda draft: draft.with_token(MADE_UP))
        if refused.answer is not None:
            texts.append(("the answer to a made-up token", refused.answer.text))
    for where, text in texts:
        for what, pattern in (
            ("a vendor's error code", _CODES),
            ("a verification address", _VERIFIES),
            ("a stack trace", _TRACE),
        ):
            if pattern.search(text):
                return _unsafe(seen, f"{where} shows {what}")
    return _safe(seen, f"no vendor code, verification address or stack trace in {' and '.join(w for w, _ in texts)}")


def no_widget(trial: Trial) -> Judged:
    """Look for the widget, its sitekey and its vendor's script."""
    seen, kind = trial.seen(), trial.form.type
    scripted = trial.form.submit is not None
    if not seen.sitekeys:
        if scripted:
            return inconclusive("the page as it is served shows no widget; its scripts may add one")
        return _unsafe(seen, f"the page shows no {kind} widget")
    if all((key or "").strip().lower() in _NO_KEYS for key in seen.sitekeys):
        return _unsafe(seen, f"the {kind} widget has no sitekey")
    wanted = _SCRIPTS[kind] or ()
    sources = [*seen.scripts, *(text for _, text in seen.bundles)]
    if wanted and not any(part in source for part in wanted for source in (*sources, seen.text)):
        if len(seen.scripts) > len(seen.bundles):
            return inconclusive(
                "the widget's script is not named; one that lies elsewhere, and is not read, may load it"
            )
        return _unsafe(seen, f"the page has a {kind} widget and no script that would show it")
    return _safe(seen, "widget, sitekey and script are there")


def _safe(seen: SeenPage, reason: str) -> Judged:
    return Judged(ProbeVerdict.SAFE, reason, f"GET {seen.url.path}: {seen.status}", seen.status)


def _unsafe(seen: SeenPage, reason: str) -> Judged:
    return Judged(ProbeVerdict.UNSAFE, reason, f"GET {seen.url.path}: {seen.status}", seen.status)


PROBES = (
    Probe(
        "M30", Family.PAGE, "a content security policy blocks the widget", Severity.MEDIUM, ("CWE-693",),
        "the page's policies against what the vendor documents", "all needed hosts are allowed", csp, reads_only=True,
    ),
    Probe(
        "M31", Family.PAGE, "a secret is shown", Severity.CRITICAL, ("CWE-200", "CWE-522"),
        "the page and its own scripts, for secrets by name and shape", "only the sitekey is visible",
        secret_shown, reads_only=True,
    ),
    Probe(
        "M32", Family.PAGE, "test keys are live", Severity.CRITICAL, ("CWE-489", "CWE-1188"),
        "the sitekeys against the vendors' official test keys", "none outside of test hosts",
        test_keys, reads_only=True,
    ),
    Probe(
        "M33", Family.PAGE, "vendor codes or set-up detail are shown", Severity.LOW, ("CWE-209",),
        "the page and, outside of production, its answer to a made-up token", "generic text",
        detail_shown, reads_only=True,
    ),
    Probe(
        "M39", Family.PAGE, "the page has no working widget", Severity.MEDIUM, ("CWE-1059",),
        "the page, for container, sitekey and script", "a widget wherever the server demands a token",
        no_widget, reads_only=True,
    ),
)  # fmt: skip
