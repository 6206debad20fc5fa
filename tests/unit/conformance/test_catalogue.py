"""Probes as data, and what `--captcha-probes` selects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_captcha_qa.conformance.catalogue import CATALOGUE, families, select
from pytest_captcha_qa.conformance.probe import Family
from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.model.probing import Severity

DOCS = Path(__file__).parents[3] / "docs" / "conformance.md"
ALL_IDS = {f"M{number:02}" for number in range(1, 40)}


def test_every_id_of_the_reference_is_a_probe():
    assert set(CATALOGUE) == ALL_IDS


@pytest.mark.parametrize("probe", CATALOGUE.values(), ids=str)
def test_an_entry_says_what_a_reader_needs(probe):
    assert probe.title
    assert probe.provoked
    assert probe.safe
    assert all(re.match(r"CWE-\d+|WSTG-|ASVS ", standard) for standard in probe.standards)
    assert probe.standards
    assert set(probe.implies) <= set(CATALOGUE)
    assert probe.id not in probe.implies
    assert probe.destructive == (probe.family is Family.LOAD)


def test_the_page_says_which_probes_exist():
    rows = dict(re.findall(r"^\| (M\d\d) \| ([^|]+) \|", DOCS.read_text(), re.MULTILINE))
    assert {id: family.strip() for id, family in rows.items()} == {id: str(p.family) for id, p in CATALOGUE.items()}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("safe", {id for id, probe in CATALOGUE.items() if not probe.destructive}),
        ("all", set(CATALOGUE)),
        ("M06", {"M06"}),
        ("m03, M39", {"M03", "M39"}),
        ("replay", {"M05", "M12", "M36"}),
        ("M5", {"M05"}),
        ("critical", {"M01", "M02", "M03", "M04", "M16", "M25", "M31", "M32"}),
        ("route,high", {"M22", "M23", "M24", "M25", "M26", "M38"}),
    ],
)
def test_words_select_probes(asked, expected):
    assert {probe.id for probe in select(asked)} == expected


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("M99", "unknown probe 'M99' in --captcha-probes: there are M01 to M39"),
        ("sfae", "did you mean 'safe'"),
        ("toke", "did you mean 'token'"),
        ("M40", "unknown probe 'M40'"),
        ("load", "'load' selects no probe"),
        ("M05,critical", "'M05,critical' selects no probe"),
        (",", "',' selects no probe"),
    ],
)
def test_a_word_that_is_no_probe_is_refused_with_the_reason(asked, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        select(asked)


def test_what_is_destructive_comes_last():
    assert families(select("all"))[-1] is Family.LOAD
    assert families(reversed(select("all")))[-1] is Family.LOAD


def test_severities_are_ordered():
    assert Severity.CRITICAL.reaches(Severity.LOW)
    assert not Severity.LOW.reaches(Severity.MEDIUM)
