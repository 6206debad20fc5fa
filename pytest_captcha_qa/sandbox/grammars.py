"""How the answer of each endpoint is read and refused, where a test scripts it and the log tells what it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Grammar:
    """One endpoint's.

    `names`: its documented parameters; `accepted`: whether an answer says yes; `refusal`: its answer with an error
    code, without one for an empty code; `places`: where score, action and hostname stand.
    """

    vendor: str
    path: re.Pattern[str]
    names: frozenset[str]
    accepted: Callable[[Reply], bool]
    refusal: Callable[[Reply, str], Reply]
    places: Mapping[str, str] = field(default_factory=dict)


def _siteverify(reply: Reply, code: str) -> Reply:
    return {"success": False, **({"error-codes": [code]} if code else {})}


def _assessment(reply: Reply, code: str) -> Reply:
    reason = {"invalidReason": code} if code else {}
    kept = {name: value for name, value in reply.items() if name in ("name", "event")}
    return {**kept, "tokenProperties": {"valid": False, **reason}}


def _friendly(reply: Reply, code: str) -> Reply:
    return {"success": False, **({"error": {"error_code": code, "detail": "scripted"}} if code else {})}


def _geetest_v4(reply: Reply, code: str) -> Reply:
    if code:
        return {"status": "error", "code": code, "msg": "scripted"}
    return {"status": "success", "result": "fail", "reason": ""}


_SITEVERIFY = {"score": "score", "action": "action", "hostname": "hostname"}
_ASSESSMENT = {
    "score": "riskAnalysis.score",
    "action": "tokenProperties.action",
    "hostname": "tokenProperties.hostname",
}


def _says_success(reply: Reply) -> bool:
    return reply.get("success") is True


def _grammar(
    vendor: str, path: str, names: str, accepted: Callable[[Reply], bool], refusal: Any, places: Any
) -> Grammar:
    return Grammar(vendor, re.compile(path), frozenset(names.split()), accepted, refusal, places)


GRAMMARS = (
    _grammar(
        "recaptcha", "/recaptcha/api/siteverify", "secret response remoteip", _says_success, _siteverify, _SITEVERIFY
    ),
    _grammar(
        "turnstile", "/turnstile/v0/siteverify", "secret response remoteip idempotency_key", _says_success, _siteverify,
        _SITEVERIFY,
    ),
    _grammar("hcaptcha", "/siteverify", "secret response remoteip sitekey", _says_success, _siteverify, _SITEVERIFY),
    _grammar(
        "enterprise", "/v1/projects/[^/]+/assessments",
        "key event",
        lambda reply: reply.get("tokenProperties", {}).get("valid") is True, _assessment, _ASSESSMENT,
    ),
    _grammar(
        "friendly", "/api/v2/captcha/siteverify", "response sitekey", _says_success, _friendly,
        {"hostname": "data.challenge.origin"},
    ),
    _grammar(
        "geetest_v3", r"/validate\.php",
        "seccode challenge captchaid json_format sdk user_id client_type ip_address",
        lambda reply: reply.get("seccode") not in (None, "", "false"), lambda reply, code: {"seccode": "false"}, {},
    ),
    _grammar(
        "yandex", "/validate#yandex", "secret token ip",
        lambda reply: reply.get("status") == "ok",
        lambda reply, code: {"status": "failed", "message": code, "host": ""}, {"hostname": "host"},
    ),
    _grammar(
        "geetest_v4", "/validate", "lot_number captcha_output pass_token gen_time captcha_id sign_token",
        lambda reply: reply.get("result") == "success", _geetest_v4, {"hostname": "captcha_args.referer"},
    ),
)  # fmt: skip


def grammar_of(path: str, *, yandex: bool = False) -> Grammar | None:
    """Return the grammar of an endpoint; `yandex` tells the two apart that share a path."""
    sought = f"{path}#yandex" if yandex else path
    return next((grammar for grammar in GRAMMARS if grammar.path.fullmatch(sought)), None)
