"""The fixtures. Their names are always known; what they need is imported when a test uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_captcha_qa.plugin.markers import spec_of

if TYPE_CHECKING:
    from pytest_captcha_qa.model.attempt import Outcome, Verdict
    from pytest_captcha_qa.model.identity import Identity
    from pytest_captcha_qa.model.token import Token
    from pytest_captcha_qa.plugin.case import Case, FormPage
    from pytest_captcha_qa.plugin.env import HttpSession, Solver
    from pytest_captcha_qa.plugin.probes import ProbeReport
    from pytest_captcha_qa.plugin.sharing import Sessions
    from pytest_captcha_qa.plugin.standin import StandInControl
    from pytest_captcha_qa.wiring.site import CaptchaEnv


@pytest.fixture(scope="session")
def captcha_env(pytestconfig: pytest.Config) -> CaptchaEnv:
    """The environment under test: origin, forms, release, kind, key mode."""
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import env

    return env.environment(pytestconfig)


@pytest.fixture(scope="session")
def captcha_solver(pytestconfig: pytest.Config) -> Iterator[Solver]:
    """`solve(form, *, subject=None, timeout=None)` returns a token of a configured form, outside of a single test."""
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import env

    solver = env.solver(pytestconfig)
    yield solver
    solver.close()


@pytest.fixture(scope="session")
def captcha_session(pytestconfig: pytest.Config) -> Sessions:
    """`captcha_session("login")` makes one login for the whole run, over all xdist workers, and returns its session.

    `.http` is an HTTP session with its cookies, `.storage_state()` what a Playwright context takes.
    """
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import sharing

    return sharing.sessions(pytestconfig)


@pytest.fixture(scope="session")
def captcha_standin(pytestconfig: pytest.Config) -> StandInControl:
    """`token(page, score=0.1)` returns a token about which the vendor's stand-in answers so; `calls()` is its log.

    For accounts with provider "standin", and for the environment demo. Ends with the session, whatever was scripted.
    """
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import standin

    return standin.StandInControl(standin.vendor(pytestconfig))


@pytest.fixture
def captcha_identity(pytestconfig: pytest.Config) -> Identity:
    """The synthetic person whose data this test submits; override it to bring your own."""
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import env

    return env.identity(pytestconfig)


@pytest.fixture
def captcha_http(pytestconfig: pytest.Config) -> HttpSession:
    """The HTTP session that opens this test's forms; override it to log in first."""
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import env

    return env.http(pytestconfig)


@pytest.fixture
def captcha_form_args() -> Mapping[str, str]:
    """Field values that every submit of this test adds to the configured ones; override it in conftest.py.

    A name that a form does not have is refused before its token is solved.
    """
    return {}


@pytest.fixture
def captcha_form_name(request: pytest.FixtureRequest) -> str:
    """The slug of a configured form; the test runs once for each form that its marker leaves."""
    return str(getattr(request, "param", "")) or _no_form()


@pytest.fixture
def _captcha_case(
    request: pytest.FixtureRequest,
    captcha_identity: Identity,
    captcha_http: HttpSession,
    captcha_form_args: Mapping[str, str],
) -> Iterator[Case]:
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import env
    from pytest_captcha_qa.plugin.case import Situation

    item = request.node
    situation = Situation(
        nodeid=item.nodeid,
        subject=spec_of(item).subject or item.nodeid,
        tries=getattr(item, "execution_count", 1),
        identity=captcha_identity,
        fields=captcha_form_args,
        submits="captcha_form" in request.fixturenames,
    )
    case = env.case(request.config, item, situation, captcha_http)
    yield case
    case.close()


@pytest.fixture
def captcha_token(_captcha_case: Case) -> Callable[[str], Token]:
    """`captcha_token("signup")` returns this test's single-use token of the form: the unspent one, or the next."""
    return Crossing("captcha_token", _captcha_case.token)


@pytest.fixture
def captcha_form(_captcha_case: Case) -> Callable[[str], FormPage]:
    """`captcha_form("signup")` returns the opened page, whose `submit()` returns what the site made of it."""
    return Crossing("captcha_form", _captcha_case.form)


@pytest.fixture
def captcha_verify(_captcha_case: Case) -> Callable[..., Verdict]:
    """`captcha_verify(token)` returns what your own backend, or the vendor, says of a token, which is spent by it.

    `captcha_verify(token, expect="refuse")` asks once more about a used one.
    """
    return Crossing("captcha_verify", _captcha_case.verify)


@pytest.fixture
def captcha_attempt(_captcha_case: Case) -> Callable[[str], Outcome]:
    """`captcha_attempt("signup")` opens, solves, submits and verifies, and returns what came of it."""
    return Crossing("captcha_attempt", _captcha_case.attempt)


@pytest.fixture
def captcha_probe_family(request: pytest.FixtureRequest) -> str:
    """A family of the conformance probes that `--captcha-probes` asks for; the test runs once for each."""
    return str(getattr(request, "param", "")) or _no_probes()


@pytest.fixture
def captcha_probes(request: pytest.FixtureRequest) -> Callable[[str, str], ProbeReport]:
    """`captcha_probes(form, family)` runs the family's selected probes and returns what they say, one a probe."""
    __tracebackhide__ = True
    from pytest_captcha_qa.plugin import env, probes

    run = env.run_in(request.config)
    item = request.node
    return Crossing("captcha_probes", lambda form, family: probes.run_family(run, item, form, family))


class Crossing:
    """Calls into the harness; what fails there shows no secret on its way out."""

    def __init__(self, fixture: str, function: Callable[..., Any]) -> None:
        self._fixture = fixture
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        __tracebackhide__ = True
        from pytest_captcha_qa.plugin.boundary import call

        return call(self._function, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self._fixture}>"


def _no_probes() -> str:
    pytest.skip("no conformance probes were asked for; --captcha-probes=safe runs those that do no harm")


def _no_form() -> str:
    pytest.skip("no configured form matches this test")
