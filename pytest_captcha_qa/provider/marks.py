"""The marks by which a token of the sandbox is told from a real one, whoever hands it out (R0.3)."""

from __future__ import annotations

from pytest_captcha_qa.model.captcha import CaptchaType
from pytest_captcha_qa.model.form import Challenge
from pytest_captcha_qa.model.token import Solution
from pytest_captcha_qa.provider.dialects import SANDBOX, Mark


def is_marked(solution: Solution, mark: Mark) -> bool:
    """Return whether a token carries the mark."""
    return solution.parts.get(mark.part, "").startswith(mark.head)


def would_leave(solution: Solution, challenge: Challenge) -> bool:
    """Return whether a token that the sandbox made is meant for a page that is not on this machine."""
    return not challenge.page.origin.is_loopback and _is_of_sandbox(challenge.type, solution)


def _is_of_sandbox(kind: CaptchaType, solution: Solution) -> bool:
    method = SANDBOX.methods[kind]
    return method is not None and method.mark is not None and is_marked(solution, method.mark)
