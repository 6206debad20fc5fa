"""What a test of the conformance suite says when a form fails its probes."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.conformance.catalogue import known
from pytest_captcha_qa.conformance.judge import Judged
from pytest_captcha_qa.conformance.runner import Finding
from pytest_captcha_qa.errors import ProbeFailed, VerificationBypassed
from pytest_captcha_qa.model.probing import ProbeVerdict as V
from pytest_captcha_qa.plugin.probes import ProbeReport


def found(id: str, verdict: V) -> Finding:
    against = verdict in (V.UNSAFE, V.CRASH)
    return Finding(known(id), "signup", Judged(verdict, "why"), True, against, verdict is V.UNSAFE)


CRASH, BYPASS, SAFE = found("M16", V.CRASH), found("M11", V.UNSAFE), found("M07", V.SAFE)


def test_a_bypass_is_told_before_a_crash() -> None:
    with pytest.raises(VerificationBypassed, match=r"^form 'signup', M11 .* unsafe: why; form 'signup', M16 .* crash"):
        ProbeReport((CRASH, SAFE, BYPASS)).require_safe()


def test_a_crash_is_no_bypass() -> None:
    with pytest.raises(ProbeFailed, match=r"^form 'signup', M16 .* crash: why$"):
        ProbeReport((SAFE, CRASH)).require_safe()


def test_what_is_safe_is_quiet_and_what_says_nothing_is_skipped() -> None:
    ProbeReport((SAFE, found("M08", V.NOT_APPLICABLE))).require_safe()
    with pytest.raises(pytest.skip.Exception, match=r"M08 .* not applicable: why"):
        ProbeReport((found("M08", V.NOT_APPLICABLE),)).require_safe()
