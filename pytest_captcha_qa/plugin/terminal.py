"""Prints the summary of a run."""

from __future__ import annotations

import pytest

from pytest_captcha_qa.plugin.exits import Exits
from pytest_captcha_qa.reporting.summary import summary


def print_summary(reporter: pytest.TerminalReporter, exits: Exits) -> None:
    """Write the section `captcha` below pytest's own."""
    if exits.verdict is None:
        return
    reporter.ensure_newline()
    reporter.section("captcha")
    root = reporter.config.rootpath
    width = reporter._tw.fullwidth
    for line in summary(
        exits.verdict, root=root, verdict_path=exits.written_verdict, skipped=exits.skipped, width=width
    ):
        reporter.write_line(line.text, **line.markup)
    for said in exits.said:
        reporter.write_line(said)
    if exits.dashboard is not None:
        reporter.write_line(exits.dashboard.text, **exits.dashboard.markup)
