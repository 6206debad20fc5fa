"""What a pool of attempts is called, the same in comparison, gate, dashboard and summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_captcha_qa.reporting.numbers import percent
from pytest_captcha_qa.reporting.wording import short

if TYPE_CHECKING:
    from pytest_captcha_qa.reporting.figures import Pool

_DEFAULT_PROJECT = "default"


def named(pool: Pool) -> str:
    """Return a pool in words, such as `turnstile (captchaai, live)` or `form 'signup' (turnstile, captchaai, live)`.

    Names from records are inert and short in it. The environment is left to the context.
    """
    told = [short(pool.type)] if pool.form is not None else []
    told += [made_by(pool.provider, pool.key_mode)]
    told += [f"project {short(pool.project)}"] if pool.project != _DEFAULT_PROJECT else []
    told += [f"times {scaled(pool.time_scale)}"] if pool.time_scale != 1 else []
    apart = ", ".join(filter(None, told))
    return f"{briefly(pool)} ({apart})" if apart else briefly(pool)


def briefly(pool: Pool) -> str:
    """Return the form or captcha type that a pool is about, where the rest stands beside."""
    return short(pool.type) if pool.form is None else f"form {short(pool.form)!r}"


def made_by(provider: str, key_mode: str) -> str:
    """Return who makes the tokens and what they prove, such as `captchaai, live`; empty where nobody knows."""
    return ", ".join(map(short, filter(None, (provider, key_mode))))


def scaled(time_scale: float) -> str:
    """Return how much shorter than real ones times are."""
    return f"scaled to {percent(time_scale)}"
