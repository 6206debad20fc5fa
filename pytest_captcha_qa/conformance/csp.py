"""Content security policies, as far as a widget needs them: which sources a directive lets load."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from pytest_captcha_qa.model.captcha import CaptchaType

_GOOGLE = {
    "script-src": ("https://www.google.com/recaptcha/", "https://www.gstatic.com/recaptcha/"),
    "frame-src": ("https://www.google.com/recaptcha/",),
}
_HCAPTCHA = ("https://hcaptcha.com/", "https://newassets.hcaptcha.com/")

# reference/verification.md 1.7: the vendors' documentation; None where none was found.
NEEDED: Mapping[CaptchaType, Mapping[str, tuple[str, ...]] | None] = {
    CaptchaType.RECAPTCHA_V2: _GOOGLE,
    CaptchaType.RECAPTCHA_V2_INVISIBLE: _GOOGLE,
    CaptchaType.RECAPTCHA_V3: _GOOGLE,
    CaptchaType.RECAPTCHA_ENTERPRISE: _GOOGLE,
    CaptchaType.TURNSTILE: dict.fromkeys(("script-src", "frame-src"), ("https://challenges.cloudflare.com/",)),
    CaptchaType.HCAPTCHA: dict.fromkeys(("script-src", "frame-src", "style-src", "connect-src"), _HCAPTCHA),
    CaptchaType.GEETEST_V3: None,
    CaptchaType.GEETEST_V4: None,
    CaptchaType.FRIENDLY_V2: None,
    CaptchaType.ALTCHA: None,
    CaptchaType.IMAGE: None,
}

_FALLBACK = {
    "script-src": ("script-src-elem", "script-src", "default-src"),
    "style-src": ("style-src-elem", "style-src", "default-src"),
    "frame-src": ("frame-src", "child-src", "default-src"),
    "connect-src": ("connect-src", "default-src"),
}


def blocked(policy: str, kind: CaptchaType, page: str) -> list[str]:
    """Return what a policy keeps a widget of the type from loading, as `directive address`; empty if nothing."""
    directives = _directives(policy)
    found = []
    for directive, addresses in (NEEDED[kind] or {}).items():
        sources = next((directives[name] for name in _FALLBACK[directive] if name in directives), None)
        if sources is not None:
            found += [f"{directive} {address}" for address in addresses if not _allowed(address, sources, page)]
    return found


def _directives(policy: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in policy.split(";"):
        words = part.split()
        if words:
            found.setdefault(words[0].lower(), words[1:])
    return found


def _allowed(address: str, sources: list[str], page: str) -> bool:
    # A nonce, a hash or 'strict-dynamic' may let any script load, and the page alone does not tell which.
    if any(source.lower().startswith(("'nonce-", "'sha", "'strict-dynamic'")) for source in sources):
        return True
    return any(_matches(source, address, page) for source in sources)


def _matches(source: str, address: str, page: str) -> bool:
    wanted, lower = urlsplit(address), source.lower()
    if lower in ("*", "https:"):
        return True
    if lower == "'self'":
        return urlsplit(page).netloc == wanted.netloc
    if lower.startswith("'") or lower.endswith(":"):
        return False
    given = urlsplit(lower if "://" in lower else f"https://{lower}")
    return given.scheme in ("https", "http") and _is_there(given, wanted)


def _is_there(given: SplitResult, wanted: SplitResult) -> bool:
    """Return whether host, port and path of a source cover an address."""
    try:
        own_port = given.port in (None, 443)
    except ValueError:
        own_port = given.netloc.endswith(":*")
    host = given.hostname or ""
    fits = wanted.netloc.endswith(host[1:]) if host.startswith("*.") else wanted.netloc == host
    within = wanted.path.startswith(given.path) or (given.path.startswith(wanted.path) and given.path[-3:] == ".js")
    return own_port and fits and within
