from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from lxml import html as lxml_html

from history.team import Team
from pytest_captcha_qa.reporting.dashboard.contents import MOST_ROWS
from pytest_captcha_qa.reporting.dashboard.model import Dashboard, Level, RuleRow, Tag
from pytest_captcha_qa.reporting.dashboard.page import render

MakePage = Callable[..., Dashboard]
EVIL = "</script><script>window.hit=1</script><img src=x onerror=window.hit=2>\u2028\u202e{{7*7}}<!--\x1b[31m"


@pytest.fixture
def hostile() -> Team:
    """A team whose every name tries to be something else."""
    long = f"{EVIL}{'W' * 400}"
    return Team(
        env=f"e{EVIL}",
        project=f"p{long}",
        provider=f"v{long}",
        forms={f"javascript:alert(1)//{EVIL}": "turnstile", f"b{long}": "hcaptcha"},
        releases=[f"r{EVIL}", f"s{long}"],
        probes=True,
        unsafe=[f"b{long}"],
        broken=[f"b{long}"],
        words=long,
        versions=[EVIL, long],
    )


def parsed(text: str) -> Any:
    return lxml_html.fromstring(text)


def data_of(text: str) -> Any:
    return json.loads(parsed(text).xpath("//script[@id='data-json']")[0].text)


def test_the_policy_allows_these_scripts_and_this_style_and_nothing_else(page_of: MakePage) -> None:
    text = render(page_of(Team()))

    (policy,) = parsed(text).xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    said = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert {key: value for key, value in said.items() if key not in ("script-src", "style-src")} == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    scripts = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert said["script-src"].split() == [hashed(script) for script in scripts]
    assert said["style-src"].split() == [hashed(style) for style in styles]
    assert len(scripts) == 2


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_on_the_page_asks_for_anything(page_of: MakePage) -> None:
    page = parsed(render(page_of(Team(probes=True))))

    places = page.xpath("//@src | //link/@href | //@action | //@poster | //@data-src")
    assert places == ["data:,"]
    assert all(link.startswith(("#", "./")) for link in page.xpath("//a/@href"))
    assert page.xpath("//*[@style or @onclick or @onload or @onerror]") == []


def test_the_page_stays_below_two_megabytes_over_200_releases(page_of: MakePage) -> None:
    names = [f"2.{number}.0" for number in range(200)]
    text = render(page_of(Team(releases=names, runs=1, per_form=1)))

    assert len(text.encode()) < 2_000_000
    assert f"The newest {MOST_ROWS} of 200 releases." in text


def test_a_wide_history_is_shortened_to_two_megabytes_and_the_page_says_so(page_of: MakePage) -> None:
    whole = page_of(Team(evenings=0), Team(env="qa"))
    wide = replace(whole, movers=[*whole.movers] * 60, figures=[*whole.figures] * 400, moments=[*whole.moments] * 300)

    text = render(wide)

    assert len(text.encode()) < 2_000_000
    page = parsed(text)
    assert "To stay below two megabytes" in page.xpath("string(//section[@id='data'])")
    same = page.xpath("//section[@id='changes']//p[@class='more']")
    assert any(re.fullmatch(r"The first \d+ of [\d,]+\.", one.text_content()) for one in same)


def test_what_the_gate_says_is_open_where_somebody_is_called_for_and_folded_where_not(page_of: MakePage) -> None:
    rows = [RuleRow(tag=Tag("staging"), level=level, word=level, rule="max_age_of_pass", sentence="why")
            for level in (Level.BAD, Level.WARN, Level.UNKNOWN, Level.UNKNOWN, Level.GOOD)]  # fmt: skip
    page = parsed(render(replace(page_of(Team(evenings=0)), rules=rows)))

    tables = page.xpath("//table[.//th[@class='rule']]")
    assert [len(table.xpath("./tbody/tr")) for table in tables] == [2, 2, 1]
    assert [bool(table.xpath("ancestor::details")) for table in tables] == [False, True, True]


def test_names_that_look_alike_are_told_apart_in_the_filters(page_of: MakePage) -> None:
    page = page_of(Team(forms={f"{'W' * 200}{end}": "turnstile" for end in "ab"} | {"": "turnstile"}, runs=1))

    assert data_of(render(page))["names"]["form"] == ["(no name)", f"{'W' * 89}…", f"{'W' * 89}… (2)"]


def test_names_that_try_to_be_markup_are_text(page_of: MakePage, hostile: Team) -> None:
    text = render(page_of(hostile))

    page = parsed(text)
    assert len(page.xpath("//script")) == 3
    assert page.xpath("//img") == []
    assert not any(mark in text for mark in ("\u2028", "\u202e", "\x1b"))
    assert "49" not in page.xpath("string(//h1)")
    assert "{{7*7}}" in page.xpath("string(//main)")
    assert all(link.startswith(("#", "./")) for link in page.xpath("//a/@href"))


def test_data_is_inert_whatever_its_strings_are(page_of: MakePage, hostile: Team) -> None:
    text = render(page_of(hostile))

    start = text.index('id="data-json">') + len('id="data-json">')
    raw = text[start : text.index("</script>", start)]
    assert raw.isascii()
    assert not set(raw) & set("<>&\n\r")
    assert json.loads(raw)["names"]["form"][0].startswith("b</script>")


def test_numbers_stand_in_tables_that_need_no_script(page_of: MakePage) -> None:
    page = parsed(render(page_of(Team(slow=1.8, evenings=0, runs=12, per_form=4))))

    (table,) = page.xpath("//table[contains(@class,'movers')][caption='Got worse']")
    cells = [" ".join(cell.text_content().split()) for cell in table.xpath(".//tbody/tr[1]/*")]
    assert cells[0] == "form 'signup' (turnstile, captchaai, live)"
    assert cells[4].startswith("+")
    assert cells[4].endswith("%")
    (times,) = page.xpath("//table[@data-table='times'][@data-pool='p2']")
    assert [row.text_content() for row in times.xpath(".//tbody/tr/th")] == ["1.2.0", "1.1.0", "1.0.0"]


def test_static_rows_and_data_say_the_same(page_of: MakePage) -> None:
    text = render(page_of(Team()))

    data = data_of(text)
    rows = [dict(zip(data["columns"], row, strict=True)) for row in data["points"]]
    newest = [row for row in rows if row["form"] == -1 and data["releases"][row["release"]] == "1.2.0"]
    for row in newest:
        key = data["pools"][row["pool"]]["key"]
        (table,) = parsed(text).xpath(f"//table[@data-table='times'][@data-pool='{key}']")
        cells = [cell.text_content() for cell in table.xpath(".//tbody/tr[1]/*")]
        assert cells[:3] == ["1.2.0", str(row["runs"]), str(row["waits"])]
        assert float(cells[3].removesuffix(" s")) == pytest.approx(row["median"], rel=0.01)


def test_charts_name_no_address_and_each_has_what_it_needs(page_of: MakePage) -> None:
    text = render(page_of(Team(probes=True)))

    data = data_of(text)
    charts = set(parsed(text).xpath("//@data-chart"))
    assert charts <= set(data["specs"])
    assert set(data["needs"]) == set(data["specs"])
    assert "http" not in json.dumps(data["specs"])


def test_an_empty_history_says_so_everywhere(page_of: MakePage) -> None:
    page = parsed(render(page_of(Team(releases=["1"], runs=1, forms={}))))

    empties = [one.text_content() for one in page.xpath("//p[@class='empty']")]
    assert "No positive check was recorded." in empties
    assert page.xpath("//figure") == []


def test_headings_go_down_step_by_step_and_each_section_has_one(page_of: MakePage) -> None:
    page = parsed(render(page_of(Team(probes=True))))

    levels = [int(heading.tag[1]) for heading in page.xpath("//h1|//h2|//h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(section.xpath("./h2[@id]") for section in page.xpath("//main/section"))
    assert page.xpath("//table[not(caption)]") == []


def test_the_page_names_whose_work_draws_the_charts(page_of: MakePage) -> None:
    assert "BSD 3-clause" in parsed(render(page_of(Team()))).xpath("string(//footer)")
