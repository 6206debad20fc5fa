from __future__ import annotations

import tomllib

import pytest

from pytest_captcha_qa.errors import ConfigError
from pytest_captcha_qa.sandbox import server
from pytest_captcha_qa.sandbox.forms import SOUND


@pytest.mark.parametrize("time_scale", [-1.0, float("nan"), float("inf")])
def test_a_time_scale_that_makes_no_sense_is_refused(time_scale: float) -> None:
    with pytest.raises(ConfigError, match="time scale"):
        server.serve(time_scale=time_scale)


@pytest.mark.parametrize("port", [-1, 65533, 70000])
def test_a_port_without_room_for_four_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="port"):
        server.serve(port)


def test_the_command_line_says_what_is_wrong_and_exits_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert server.main(["--port", "70000"]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "70000" in captured.err


def test_a_sandbox_that_never_ran_can_be_stopped() -> None:
    with server.SandboxProcess() as sandbox:
        sandbox.stop()


def test_the_demo_configuration_names_forms_of_the_site() -> None:
    demo = tomllib.loads(server.DEMO_CONFIG.read_text("utf-8"))
    paths = {form["path"].strip("/") for form in demo["forms"].values()}
    assert paths == {form.slug for form in SOUND}
    assert demo["env"]["demo"]["account"] in demo["accounts"]
