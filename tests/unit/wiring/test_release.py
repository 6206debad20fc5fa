from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from requests.structures import CaseInsensitiveDict

from pytest_captcha_qa.config.resolved import EnvironmentConfig
from pytest_captcha_qa.errors import CaptchaQAError, ConfigError, ScopeDenied, TransportError
from pytest_captcha_qa.model.url import Url
from pytest_captcha_qa.testing import FakeGrants
from pytest_captcha_qa.transport import Reply
from pytest_captcha_qa.wiring.release import release_of

FROM_JSON = 'release_from = { path = "/version", json = "app.version" }'
FROM_HEADER = 'release_from = { path = "/version", header = "X-Release" }'
NewEnvironment = Callable[..., EnvironmentConfig]


class Site:
    """An HttpClient whose every request has the same answer."""

    def __init__(self, body: str = "", *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._answer = (status, CaseInsensitiveDict(headers or {}), body.encode())
        self.asked: list[str] = []
        self.fails: CaptchaQAError | None = None

    def request(self, method: str, url: Url, **rest: Any) -> Reply:
        self.asked.append(f"{method} {url}")
        if self.fails is not None:
            raise self.fails
        status, headers, body = self._answer
        return Reply(status, url, headers, body)


def told(environment: EnvironmentConfig, site: Site, grants: Any = None) -> str | None:
    return release_of(environment, site, grants or FakeGrants())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "site", "release"),
    [
        (FROM_JSON, Site('{"app": {"version": "1.3.0"}}'), "1.3.0"),
        (FROM_JSON, Site('{"app": {"version": 7}}'), "7"),
        (FROM_JSON, Site('{"app": {}}'), None),
        (FROM_JSON, Site('{"app": {"version": ""}}'), None),
        (FROM_JSON, Site("<html>log in</html>"), None),
        (FROM_JSON, Site('{"app": {"version": "1.3.0"}}', status=500), None),
        (FROM_JSON, Site('{"app": {"version": "%s"}}' % ("9" * 100)), "9" * 100),
        (FROM_JSON, Site('{"app": {"version": "%s"}}' % ("9" * 101)), None),
        (FROM_JSON, Site('{"app": {"version": "1.3\\u001b[2J"}}'), None),
        (FROM_JSON, Site('{"app": {"version": "1.3\\nverdict: go"}}'), None),
        (FROM_JSON, Site('{"app": {"version": "1.3\\u202e"}}'), None),
        (FROM_JSON, Site('{"app": {"version": "1.3\\ud800"}}'), None),
        (FROM_JSON, Site('{"app": {"version": "  "}}'), None),
        (FROM_JSON, Site('{"app": {"version": null}}'), None),
        (FROM_HEADER, Site(headers={"x-release": "build 7 (main)"}), "build 7 (main)"),
        (FROM_HEADER, Site(headers={"x-release": "a\x9bb"}), None),
        (FROM_HEADER, Site(headers={"x-release": "abc123"}), "abc123"),
        (FROM_HEADER, Site(), None),
    ],
)
def test_the_site_tells_its_release_or_it_is_unknown(
    environment: NewEnvironment, source: str, site: Site, release: str | None
) -> None:
    assert told(environment(source), site) == release
    assert site.asked == ["GET http://127.0.0.1:9/version"]


@pytest.mark.parametrize("more", ["", FROM_JSON])
def test_a_release_that_was_given_is_not_asked_for(environment: NewEnvironment, more: str) -> None:
    site = Site()
    assert told(environment(more, release="2.0"), site) == "2.0"
    assert site.asked == []


@pytest.mark.parametrize("release", ["1.3\x1b[2J", "1.3\ngo", "é", "9" * 101])
def test_a_release_that_was_given_and_cannot_be_shown_is_refused_in_words(
    environment: NewEnvironment, release: str
) -> None:
    with pytest.raises(ConfigError, match=r"--captcha-release or CAPTCHA_QA_RELEASE.*100 printable ASCII") as refused:
        told(environment(release=release), Site())
    assert release not in str(refused.value)


def test_a_variable_with_a_release_that_cannot_be_shown_is_named(environment: NewEnvironment, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DEPLOYED=1.3\x1b[2J\n")
    with pytest.raises(ConfigError, match="DEPLOYED"):
        told(environment('release_env = "DEPLOYED"'), Site())


def test_blanks_around_a_release_that_was_given_do_not_count(environment: NewEnvironment) -> None:
    assert told(environment(release=" 2.0\n"), Site()) == "2.0"


def test_without_a_source_nothing_is_asked(environment: NewEnvironment) -> None:
    site = Site()
    assert told(environment(), site) is None
    assert site.asked == []


def test_a_site_that_does_not_answer_leaves_it_unknown(environment: NewEnvironment) -> None:
    site = Site()
    site.fails = TransportError("no answer", kind="connect")
    assert told(environment(FROM_JSON), site) is None


def test_a_site_that_is_not_authorised_is_not_asked(environment: NewEnvironment) -> None:
    class Nothing:
        def grant(self, url: Url) -> Any:
            raise ScopeDenied("not yours")

    site = Site()
    assert told(environment(FROM_JSON), site, Nothing()) is None
    assert site.asked == []
