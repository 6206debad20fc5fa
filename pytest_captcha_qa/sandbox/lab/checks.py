"""The sound check of a token, and one that is wrong for each mistake that lies in the check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_captcha_qa.sandbox.backend import Trouble, VendorUnavailable
from pytest_captcha_qa.sandbox.lab.posts import Check, Crash, Post

LONGEST = 20_000
_BLANK = frozenset({"", "null", "undefined"})
_SHORT_SIGHTED = 1.0  # seconds in which a verdict is taken for one of the same submit
_KNOWN_CODES = frozenset(
    {
        "missing-input-secret", "invalid-input-secret", "missing-input-response", "invalid-input-response",
        "bad-request", "timeout-or-duplicate", "internal-error",
    }
)  # fmt: skip
_SWITCHES = ("captcha", "captcha_type", "ignoreCaptcha", "skip_captcha", "captcha_bypass", "test")
_SWITCH_HEADERS = ("x-test-environment", "x-captcha-bypass", "x-skip-captcha")
_TRUSTED = ("192.0.2.", "127.")


async def sound(post: Post) -> bool:
    """Ask the vendor once about a text that can be a token, and compare what is left to the site."""
    token = post.token.strip()
    if token in _BLANK or len(token) > LONGEST:
        return False
    return post.holds(await post.ask(token))


async def everything_passes(post: Post) -> bool:
    """M01: never ask."""
    return True


async def missing_passes(post: Post) -> bool:
    """M02: the rule applies to a field that is there."""
    return await sound(post) if post.is_there else True


async def blank_passes(post: Post) -> bool:
    """M03: an empty text counts as nothing to check."""
    return post.is_there if post.token.strip() in _BLANK else await sound(post)


async def any_text_passes(post: Post) -> bool:
    """M04: a text is enough."""
    return post.token.strip() not in _BLANK


async def replay_passes(post: Post) -> bool:
    """M05: a token that was good stays so."""
    return post.token in post.memory.passed or await sound(post)


async def parallel_passes(post: Post) -> bool:
    """M06: for a second the verdict on a token is that of a submit already under way."""
    since = post.memory.passed.get(post.token)
    if since is not None:
        return post.memory.clock() - since < _SHORT_SIGHTED
    if await sound(post):
        return True
    # The other submit may have been judged while this one was asking.
    since = post.memory.passed.get(post.token)
    return since is not None and post.memory.clock() - since < _SHORT_SIGHTED


async def old_passes(post: Post) -> bool:
    """M07: "timeout or duplicate" of a token that was not seen here before is taken for a slow visitor."""
    if post.token.strip() in _BLANK:
        return False
    reply = await post.ask(post.token)
    if "timeout-or-duplicate" in reply.get("error-codes", ()):
        return post.token not in post.memory.passed
    return post.holds(reply)


async def any_key_passes(post: Post) -> bool:
    """M12: one secret for all forms, so that a token of another form is good, too."""
    token = post.token.strip()
    return token not in _BLANK and post.holds(await post.ask(token, secret="one-secret-for-all-forms-of-the-site"))


def open_at(*troubles: Trouble, statuses: range = range(0), codes: frozenset[str] = frozenset()) -> Check:
    """Return a check that passes when the vendor is in trouble of these kinds; of statuses only those listed."""

    async def check(post: Post) -> bool:
        token = post.token.strip()
        if token in _BLANK:
            return False
        try:
            reply = await post.ask(token)
        except VendorUnavailable as failure:
            if failure.status is not None and failure.trouble is Trouble.STATUS:
                return failure.status in statuses
            return failure.trouble in troubles
        return post.holds(reply) or not codes.isdisjoint(reply.get("error-codes", ()))

    return check


async def presence_passes(post: Post) -> bool:
    """M16: an answer without an error code is a success, whatever `success` says."""
    return await _by_reply(post, lambda reply: not reply.get("error-codes"))


async def unknown_code_passes(post: Post) -> bool:
    """M17: only the codes in a list make a refusal."""

    def passes(reply: Mapping[str, Any]) -> bool:
        codes = reply.get("error-codes") or ()
        return bool(codes) and _KNOWN_CODES.isdisjoint(codes)

    return await _by_reply(post, passes)


async def _by_reply(post: Post, passes: Any) -> bool:
    token = post.token.strip()
    if token in _BLANK:
        return False
    reply = await post.ask(token)
    return post.holds(reply) or (reply.get("success") is not True and passes(reply))


async def wrong_type_crashes(post: Post) -> bool:
    """M18: a token that is no text breaks the code that reads it."""
    name = post.kind.field_name
    if any(key.startswith(f"{name}[") for key, _ in post.fields.pairs) or _is_no_text(post.token):
        raise Crash
    return await sound(post)


def _is_no_text(token: str) -> bool:
    try:
        return not isinstance(json.loads(token), str)
    except ValueError:
        return False


async def any_of_several_passes(post: Post) -> bool:
    """M19: of several tokens one good one is enough."""
    for token in post.tokens:
        if token.strip() not in _BLANK and post.holds(await post.ask(token)):
            return True
    return False


async def written_by_hand(post: Post) -> bool:
    """M20: the call of the vendor is put together without encoding."""
    token = post.token.strip()
    if token in _BLANK:
        return False
    return post.holds(await post.ask(token, raw=f"secret={post.keys.secret}&response={token}"))


async def other_encodings_pass(post: Post) -> bool:
    """M21: the check reads forms only, and passes over all else."""
    kind = post.headers.get("content-type", "").partition(";")[0]
    return await sound(post) if kind == "application/x-www-form-urlencoded" else True


async def switched_off(post: Post) -> bool:
    """M25: a field or header of the client's turns the check off."""
    asked = any(name in post.fields for name in _SWITCHES) or any(name in post.headers for name in _SWITCH_HEADERS)
    return asked or await sound(post)


async def trusted_address_passes(post: Post) -> bool:
    """M26: who claims an address of a list is trusted."""
    return post.headers.get("x-forwarded-for", "").startswith(_TRUSTED) or await sound(post)


async def asked_twice(post: Post) -> bool:
    """M28: one layer asks, and another one again, whose answer nobody reads."""
    accepted = await sound(post)
    if accepted:
        await post.ask(post.token)
    return accepted


async def verdict_kept(post: Post) -> bool:
    """M36: who passed once passes always."""
    return post.session.id in post.memory.sessions or await sound(post)


async def long_crashes(post: Post) -> bool:
    """M37: a column of the database holds 6000 characters."""
    if len(post.token) > 6000:
        raise Crash
    return await sound(post)
