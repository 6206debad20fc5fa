"""Attachments in JUnit files, as GitLab and Jenkins read them: a line in the `system-out` of the test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import pytest
from _pytest.junitxml import xml_key

from pytest_captcha_qa.plugin.explaining import ATTACHMENTS
from pytest_captcha_qa.plugin.reports import ATTRIBUTE


def attach(config: pytest.Config, report: pytest.TestReport) -> None:
    """Name the evidence of a report's failed attempts, in the process that writes the JUnit file.

    pytest has no way to add to `system-out`: captured output goes there, and only if it is told to log it.
    """
    carried: Mapping[str, Any] = getattr(report, ATTRIBUTE, None) or {}
    paths = carried.get(ATTACHMENTS, ())
    xml = config.stash.get(xml_key, None)
    if xml is None or not paths:
        return
    told = ElementTree.Element("system-out")
    told.text = "\n".join(f"[[ATTACHMENT|{path}]]" for path in paths)
    xml.node_reporter(report).append(told)
