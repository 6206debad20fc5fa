"""Conformance: the backend of each form refuses what it must refuse, and still takes a good token.

It has no name of a test module: nobody collects it without asking for probes.
"""

from __future__ import annotations


def test_the_form_refuses_what_it_must(captcha_form_name, captcha_probe_family, captcha_probes):
    report = captcha_probes(captcha_form_name, captcha_probe_family)
    assert report, "every selected probe says something, if only that it does not apply"
    report.require_safe()
