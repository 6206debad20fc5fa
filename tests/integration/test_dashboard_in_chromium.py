"""The dashboard as a browser shows it: drawn, quiet, usable without a mouse; pictures go to reports/screenshots."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from history.team import Team, write_history
from pytest_captcha_qa.reporting.dashboard.asking import Asked
from pytest_captcha_qa.reporting.dashboard.making import make_dashboard

PICTURES = Path(__file__).parents[2] / "reports" / "screenshots"
MISSING = "no Chromium here: install it (apt-get install chromium)"
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
EVIL = "</script><script>window.hit=1</script><img src=x onerror=window.hit=2>\u2028\u202e{{7*7}}<!--\x1b[31m"
LONG = f"{EVIL}{'W' * 400}"
THREE = {"signup": "turnstile", "login": "turnstile", "contact": "hcaptcha"}
TEAMS: dict[str, tuple[Team, ...]] = {
    "usual": (
        Team(forms=THREE, slow=1.8, runs=10, releases=["1.2.0", "1.3.0", "1.4.0"], probes=True, unsafe=["contact"]),
        Team(env="qa", key_mode="testkeys", forms={"signup": "turnstile"}, runs=2),
    ),
    "empty": (Team(forms={}, releases=["1.0.0"], runs=1),),
    "one-run": (Team(releases=["1.0.0"], runs=1, per_form=1, evenings=0),),
    "200-releases": (Team(forms=THREE, releases=[f"1.{number}.0" for number in range(200)], runs=1, probes=True),),
    "hostile": (
        Team(
            env=f"e{EVIL}", project=f"p{LONG}", provider=f"v{LONG}", releases=["r" * 400, f"s{LONG}"], probes=True,
            forms={f"javascript:alert(1)//{EVIL}": "turnstile", f"b{LONG}": "hcaptcha"}, unsafe=[f"b{LONG}"],
            broken=[f"b{LONG}"], words=LONG, versions=[EVIL, LONG], evenings=0.5,
        ),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each history."""
    found = {}
    for name, teams in TEAMS.items():
        folder = tmp_path_factory.mktemp(name)
        for number, team in enumerate(teams):
            write_history(folder / "records", team, seed=number + 1)
        found[name] = make_dashboard([folder / "records"], Asked(page=folder / "page.html")).path
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all of them."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None and os.environ.get("CI") == "true":
        pytest.fail(MISSING)
    if program is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*QUIET])
        yield browser
        browser.close()


class Shown:
    """One page in a context of its own, with everything that the browser has to complain about."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.add_init_script("addEventListener('securitypolicyviolation', e => console.error(e.violatedDirective))")
        self.address = file.as_uri()

    def open(self, fragment: str = "", *, script: bool = True) -> Page:
        self.page.goto(f"{self.address}{fragment}")
        if script:
            self.drawn()
        return self.page

    def drawn(self) -> None:
        self.page.wait_for_selector("html[data-charts=drawn]", timeout=20_000)

    def is_quiet(self) -> bool:
        """Whether nothing was asked for but the file itself, and nobody complained."""
        return not self.complaints and {url.partition("#")[0] for url in self.requests} == {self.address}


@pytest.fixture
def show(browser: Browser, pages: dict[str, Path]) -> Iterator[Callable[..., Shown]]:
    """`show(history, **context)` opens nothing yet; contexts are closed in the end."""
    with ExitStack() as contexts:

        def make(name: str, **options: Any) -> Shown:
            context = browser.new_context(**({"viewport": DESKTOP} | options))
            contexts.callback(context.close)
            return Shown(context.new_page(), pages[name])

        yield make


LOOKS = [
    ("usual", "desktop", {}),
    ("usual", "phone", {"viewport": PHONE}),
    ("usual", "dark", {"color_scheme": "dark"}),
    ("empty", "desktop", {}),
    ("one-run", "desktop", {}),
    ("200-releases", "desktop", {}),
    ("200-releases", "phone", {"viewport": PHONE}),
    ("hostile", "desktop", {}),
    ("hostile", "phone", {"viewport": PHONE}),
]


@pytest.mark.parametrize(("name", "look", "options"), LOOKS, ids=[f"{name}-{look}" for name, look, _ in LOOKS])
def test_a_page_draws_its_charts_and_asks_for_nothing(
    show: Callable[..., Shown], name: str, look: str, options: dict[str, Any]
) -> None:
    shown = show(name, **options)
    page = shown.open()

    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"dashboard-{name}-{look}.png", full_page=True)
    assert shown.is_quiet(), (shown.complaints, shown.requests)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert page.evaluate("window.hit") is None
    assert page.locator(".plot:visible").count() == page.locator(".plot:visible :is(svg, .none)").count()
    assert page.locator("h1").count() == 1


# All rules once; the other looks differ in colours and in what names do to them.
CONTRAST = {"runOnly": ["color-contrast"]}
AXE = [
    ("usual", {}, {}),
    ("usual", {"color_scheme": "dark"}, CONTRAST),
    ("hostile", {"viewport": PHONE}, {}),
    ("empty", {}, {}),
]


@pytest.mark.parametrize(("name", "look", "rules"), AXE)
def test_axe_finds_nothing_serious(
    show: Callable[..., Shown], name: str, look: dict[str, Any], rules: dict[str, Any]
) -> None:
    # The policy keeps axe out like any other script, so this context does without it.
    page = show(name, bypass_csp=True, **look).open()
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")

    found = Axe().run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
    told = [(one["id"], one["impact"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found]
    assert [one for one in told if one[1] in ("serious", "critical")] == []


def test_verdict_and_tables_stand_without_any_script(show: Callable[..., Shown]) -> None:
    shown = show("usual", java_script_enabled=False)
    page = shown.open(script=False)

    page.screenshot(path=PICTURES / "dashboard-usual-no-script.png")
    assert (
        page.locator(".sentence").first.inner_text().startswith("Release 1.4.0 on staging accepts what it must refuse")
    )
    assert "+" in page.locator("table.movers tbody tr td:nth-of-type(4)").first.inner_text()
    assert page.locator("#sieve").is_hidden()
    assert page.locator("noscript p").is_visible()
    assert page.locator("table[data-table=times] tbody tr").count() > 4


def test_filters_work_by_keyboard_and_stand_in_the_address(show: Callable[..., Shown]) -> None:
    shown = show("usual")
    page = shown.open()
    median = page.locator("table[data-table=times]:has(td) tbody tr:first-child td:nth-of-type(2)").last
    over_all_forms = median.text_content() or ""

    page.locator("select[name=f]").focus()
    page.keyboard.type("signup")
    page.keyboard.press("Tab")
    shown.drawn()

    assert page.url.endswith("#f=signup")
    assert page.locator(".movers tbody tr:visible").all_inner_texts()[0].startswith("form 'signup'")
    assert page.locator("table.matrix tbody tr:visible").count() == 1
    assert page.locator("figure[data-pool]:visible figcaption", has_text="hcaptcha").count() == 0
    assert median.text_content() != over_all_forms
    assert "match" in page.locator("#said").inner_text()
    page.reload()
    shown.drawn()
    assert page.locator("select[name=f] option:checked").inner_text() == "signup"

    page.locator("button[type=reset]").click()
    # The page answers when the browser has put the fields back.
    expect(median).to_have_text(over_all_forms)
    shown.drawn()
    assert page.locator("table.matrix tbody tr:visible").count() == 3
    assert shown.is_quiet(), shown.complaints


def test_a_filter_that_leaves_nothing_says_so_in_every_section(show: Callable[..., Shown]) -> None:
    page = show("usual").open("#e=qa&t=hcaptcha")

    assert page.locator("figure[data-pool]:visible").count() == 0
    assert page.locator("#trends .filtered").is_visible()
    assert page.locator("#conformance .filtered").is_visible()


@pytest.mark.parametrize(
    "fragment", ["#e=__proto__", "#f=zzz&t=constructor", "#e=%E0%A4%A", "#<img src=x onerror=hit=1>"]
)
def test_an_address_that_names_what_is_not_there_filters_nothing(show: Callable[..., Shown], fragment: str) -> None:
    shown = show("usual")
    page = shown.open(fragment)

    assert ("does not have the" in page.locator("#said").inner_text()) == ("=" in fragment and "<" not in fragment)
    assert page.locator("main tr[hidden]").count() == 0
    assert page.evaluate("window.hit") is None
    assert shown.is_quiet(), shown.complaints


def test_a_link_to_a_section_keeps_the_filters_and_moves_the_focus(show: Callable[..., Shown]) -> None:
    page = show("usual").open("#e=staging")

    page.locator("nav a", has_text="Slowest").press("Enter")

    assert page.url.endswith("#slowest&e=staging")
    assert page.evaluate("document.activeElement.id") == "slowest"


def test_colours_can_be_chosen_against_the_system(show: Callable[..., Shown]) -> None:
    page = show("usual").open("#theme=dark")

    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("select[name=theme]").select_option("light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    assert page.url.endswith("#theme=light")


def test_a_point_tells_its_numbers(show: Callable[..., Shown]) -> None:
    shown = show("usual")
    page = shown.open()

    page.locator("[data-chart=wait] .mark-symbol.role-mark path").last.hover(force=True)

    told = page.locator("#tip").inner_text()
    assert "release" in told
    assert re.search(r"median\s+\d[\d.]* m?s\b", told), told
    assert shown.is_quiet(), shown.complaints


def test_all_releases_can_be_had_as_numbers(show: Callable[..., Shown]) -> None:
    page = show("200-releases").open()

    page.locator("#trends details summary").first.click()
    page.locator("#trends details[open] button[data-all]").first.click()

    assert page.locator("#trends details[open] table[data-table=times] tbody tr").count() == 200


def test_a_print_opens_what_is_folded_and_is_light(show: Callable[..., Shown]) -> None:
    shown = show("usual", color_scheme="dark")
    page = shown.open()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")

    page.screenshot(path=PICTURES / "dashboard-usual-print.png", full_page=True)
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("nav").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
