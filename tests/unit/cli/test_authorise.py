import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pytest_captcha_qa.cli.authorise import authorise
from pytest_captcha_qa.errors import ConfigError, UnknownName
from pytest_captcha_qa.model.form import EnvKind
from pytest_captcha_qa.model.url import Origin
from pytest_captcha_qa.ownership import ProofKey, authenticate
from pytest_captcha_qa.scope import Evidence, Probes

CONFIGURATION = """
[accounts.main]
provider = "captchaai"
api_key_env = "CAPTCHAAI_API_KEY"

[env.staging]
kind = "staging"
origins = ["https://staging.shop.example", "https://*.preview.shop.example"]
base_url = "https://staging.shop.example"
account = "main"

[env.trial]
kind = "demo"
origins = ["http://127.0.0.1:8000"]
account = "main"
"""
SECRET = "00112233445566778899aabbccddeeff"
STAGING = Origin.parse("https://staging.shop.example")

Run = Callable[..., Result]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "captcha-qa.toml").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("CAPTCHA_QA_", "GIT_"))]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def run(project: Path) -> Run:
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(authorise)

    def run(*arguments: str) -> Result:
        result = CliRunner().invoke(app, arguments)
        if isinstance(result.exception, Exception):
            raise result.exception
        return result

    return run


def stored_secret(project: Path) -> str:
    found = re.search(r"^CAPTCHA_QA_PROOF_KEY=([0-9a-f]{64})$", (project / ".env").read_text(), re.MULTILINE)
    assert found
    return found.group(1)


def the_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def proven(file: Path, secret: str, origin: Origin = STAGING) -> Evidence:
    return authenticate(file.read_bytes().decode(), ProofKey(secret), origin, 0.0)


def git(project: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(project), *arguments], check=True, capture_output=True)


def test_the_first_call_makes_a_key_that_only_the_owner_can_read_and_never_shows_it(run: Run, project: Path) -> None:
    result = run("staging")
    secret = stored_secret(project)
    assert stat.S_IMODE((project / ".env").stat().st_mode) == 0o600
    assert secret not in result.output
    assert str(project / ".env") in result.output


def test_the_proof_has_the_terms_of_the_environment_and_is_public(run: Run, project: Path) -> None:
    run("staging")
    secret = stored_secret(project)
    file = the_file(project / "captcha-qa-proof" / "staging")
    evidence = proven(file, secret)
    assert file.name == f"{ProofKey(secret).id}.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(map(str, evidence.origins)) == [
        "https://staging.shop.example",
        "https://*.preview.shop.example",
    ]
    assert (evidence.kind, evidence.probes, evidence.sitekeys) == (EnvKind.STAGING, Probes.NONE, frozenset())


def test_where_to_serve_and_how_to_check_it_is_told_for_every_origin(run: Run, project: Path) -> None:
    output = run("staging").output
    path = f"/.well-known/captcha-qa/{ProofKey(stored_secret(project)).id}.txt"
    assert f"  https://staging.shop.example{path}\n" in output
    assert f"  https://*.preview.shop.example{path}\n" in output
    assert f"curl -sSig 'https://HOST.preview.shop.example{path}'" in output
    assert "text/plain" in output


def test_every_term_can_be_given(run: Run, project: Path) -> None:
    origins = ("--origin", "https://a.preview.shop.example", "--origin", "https://*.preview.shop.example")
    sitekeys = ("--sitekey", "6LcB", "--sitekey", "6LcA")
    limits = ("--probes", "safe", "--max-solves-per-hour", "30", "--days", "180")
    run("staging", *origins, *sitekeys, *limits, "--output", "out")
    evidence = proven(the_file(project / "out"), stored_secret(project))
    assert list(map(str, evidence.origins)) == ["https://a.preview.shop.example", "https://*.preview.shop.example"]
    assert (evidence.probes, evidence.sitekeys) == (Probes.SAFE, frozenset({"6LcA", "6LcB"}))
    assert evidence.max_solves_per_hour == 30


def test_a_second_call_renews_the_proof_under_the_same_key(run: Run, project: Path) -> None:
    run("staging")
    before = (project / ".env").read_bytes()
    result = run("staging", "--days", "1")
    assert (project / ".env").read_bytes() == before
    assert stored_secret(project) not in result.output
    assert proven(the_file(project / "captcha-qa-proof" / "staging"), stored_secret(project))


def test_the_key_of_the_variable_is_used_and_nothing_is_stored(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPTCHA_QA_PROOF_KEY", SECRET)
    result = run("staging")
    assert not (project / ".env").exists()
    assert SECRET not in result.output
    assert proven(the_file(project / "captcha-qa-proof" / "staging"), SECRET)


@pytest.mark.parametrize("before", ["A=1", "A=1\n", "# note\r\nA=1\r\n", "CAPTCHA_QA_PROOF_KEY=\n"])
def test_what_stood_in_dotenv_stays(run: Run, project: Path, before: str) -> None:
    (project / ".env").write_bytes(before.encode())
    (project / ".env").chmod(0o644)
    run("staging")
    after = (project / ".env").read_bytes().decode()
    assert after.startswith(before)
    assert after.count("\n") == before.count("\n") + 1 + (not before.endswith("\n"))
    assert proven(the_file(project / "captcha-qa-proof" / "staging"), stored_secret(project))
    assert stat.S_IMODE((project / ".env").stat().st_mode) == 0o600


def nothing_was_written(project: Path) -> bool:
    return not (project / ".env").exists() and not (project / "captcha-qa-proof").exists()


def test_in_a_repository_that_would_commit_the_key_nothing_is_written(run: Run, project: Path) -> None:
    git(project, "init", "-q")
    with pytest.raises(ConfigError, match=r"add \.env to \.gitignore"):
        run("staging")
    assert nothing_was_written(project)


def test_in_a_repository_that_ignores_dotenv_the_key_is_stored(run: Run, project: Path) -> None:
    git(project, "init", "-q")
    (project / ".gitignore").write_text(".env\n")
    run("staging")
    assert stored_secret(project)


def test_a_dotenv_that_is_tracked_though_ignored_is_refused(run: Run, project: Path) -> None:
    git(project, "init", "-q")
    (project / ".env").write_text("A=1\n")
    git(project, "add", ".env")
    (project / ".gitignore").write_text(".env\n")
    with pytest.raises(ConfigError, match="already tracks"):
        run("staging")
    assert (project / ".env").read_text() == "A=1\n"


def test_a_dotenv_that_leads_into_a_repository_is_refused(run: Run, project: Path) -> None:
    (project / "shared").mkdir()
    git(project / "shared", "init", "-q")
    (project / ".env").symlink_to(project / "shared" / "env")
    with pytest.raises(ConfigError, match=r"\.gitignore"):
        run("staging")
    assert not (project / "shared" / "env").exists()


def test_without_git_at_hand_a_repository_is_not_trusted(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git").mkdir()
    (project / ".gitignore").write_text(".env\n")
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(ConfigError, match=r"\.gitignore"):
        run("staging")
    assert nothing_was_written(project)


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        (("trial",), ConfigError, "needs no proof"),
        (("demo",), ConfigError, "needs no proof"),
        (("stagin",), UnknownName, "staging"),
        (("staging", "--days", "0"), ConfigError, "from 1 to 180"),
        (("staging", "--days", "181"), ConfigError, "from 1 to 180"),
        (("staging", "--origin", "https://*"), ConfigError, "--origin"),
        (("staging", "--origin", "shop.example"), ConfigError, "--origin"),
        (("staging", "--origin", "https://shop.example/signup"), ConfigError, "--origin"),
        (
            ("staging", "--origin", "https://google.com"),
            ConfigError,
            "is not among the origins of environment 'staging'",
        ),
        (("staging", "--origin", "https://*.shop.example"), ConfigError, "is not among the origins"),
        (("staging", "--origin", "https://a.b.preview.shop.example"), ConfigError, "is not among the origins"),
        (("staging", "--max-solves-per-hour", "0"), ConfigError, "max-solves-per-hour"),
        (("staging", "--days", "soon"), ConfigError, "--days: 'soon' is not a whole number from 1 to 180"),
        (("staging", "--probes", "sfe"), ConfigError, "'sfe' is not one of none, safe, all; did you mean 'safe'"),
        (("staging", "--sitekey", "a b"), ConfigError, "sitekey"),
        (("staging", "--config", "nowhere.toml"), ConfigError, r"nowhere\.toml"),
    ],
)
def test_what_makes_no_proof_is_refused_and_nothing_is_written(
    run: Run, project: Path, arguments: tuple[str, ...], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        run(*arguments)
    assert nothing_was_written(project)


@pytest.mark.parametrize(
    ("value", "why"), [("", "set to nothing"), ("abcdef", "at least 32"), ("z" * 64, "at least 32")]
)
def test_a_variable_that_holds_no_key_is_refused_without_being_shown(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, value: str, why: str
) -> None:
    monkeypatch.setenv("CAPTCHA_QA_PROOF_KEY", value)
    with pytest.raises(ConfigError, match=why) as error:
        run("staging")
    assert not value or value not in error.value.message
    assert nothing_was_written(project)


def test_an_output_folder_that_is_a_file_is_told(run: Run, project: Path) -> None:
    (project / "out").write_text("")
    with pytest.raises(ConfigError, match="could not be written"):
        run("staging", "--output", "out")


def test_a_replaced_proof_is_told_with_what_changed(run: Run, project: Path) -> None:
    assert "replaces" not in run("staging").output
    narrower = run("staging", "--origin", "https://staging.shop.example", "--days", "3", "--probes", "safe").output
    assert "It replaces an earlier file; what changed:" in narrower
    assert "  origin removed: https://*.preview.shop.example\n" in narrower
    assert "  probes none -> safe\n" in narrower
    assert re.search(r"  expiry \S+ \S+ UTC -> \S+ \S+ UTC\n", narrower)
    assert "origin added: https://*.preview.shop.example" in run("staging").output


def test_a_replaced_file_that_was_no_proof_of_this_key_is_told(run: Run, project: Path) -> None:
    run("staging")
    the_file(project / "captcha-qa-proof" / "staging").write_bytes(b"\xff hunter2\n")
    output = run("staging").output
    assert "the earlier file was no proof that this key signed" in output
    assert "hunter2" not in output


def test_where_the_key_was_found_is_told(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("staging")
    assert f"CAPTCHA_QA_PROOF_KEY has in {project / '.env'};" in run("staging").output
    monkeypatch.setenv("CAPTCHA_QA_PROOF_KEY", SECRET)
    assert "CAPTCHA_QA_PROOF_KEY has in the environment;" in run("staging").output


def test_a_script_gets_one_object(run: Run, project: Path) -> None:
    said = json.loads(run("staging", "--json", "--days", "1").output)
    secret = stored_secret(project)
    path = f"/.well-known/captcha-qa/{ProofKey(secret).id}.txt"
    assert said["file"] == str(the_file(project / "captcha-qa-proof" / "staging"))
    assert (said["replaced"], said["changes"], said["problems"]) == (False, [], [])
    assert said["serve_at"][0] == f"https://staging.shop.example{path}"
    assert said["key"] == {
        "id": ProofKey(secret).id,
        "variable": "CAPTCHA_QA_PROOF_KEY",
        "found_in": str(project / ".env"),
        "new": True,
    }
    assert secret not in json.dumps(said)
    assert json.loads(run("staging", "--json").output)["replaced"] is True


def test_a_refusal_is_one_object_for_a_script_too(run: Run, project: Path) -> None:
    result = run("staging", "--json", "--origin", "https://google.com")
    assert result.exit_code == 4
    (problem,) = json.loads(result.output)["problems"]
    assert "https://google.com is not among the origins" in problem
    assert nothing_was_written(project)


def test_the_help_names_values_in_words(run: Run) -> None:
    output = run("--help").output
    assert "--origin ORIGIN" in output
    assert "--probes none|safe|all" in output
    assert not re.search(r"<\w+", output)
