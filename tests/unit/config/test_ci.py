from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_captcha_qa.config.ci import RunIdentity, identify
from pytest_captcha_qa.config.sources import _RUN_ID

ROOT = Path("/srv/shop")

# A first run of a job and what changes in its retry, as the CIs document their variables.
CIS = {
    "gitlab": ({"CI_PIPELINE_ID": "71", "CI_JOB_NAME": "qa", "CI_JOB_ID": "900"}, {"CI_JOB_ID": "901"}),
    "github": (
        {"GITHUB_RUN_ID": "5512", "GITHUB_JOB": "qa", "GITHUB_RUN_ATTEMPT": "1"},
        {"GITHUB_RUN_ATTEMPT": "2"},
    ),
    "circleci": (
        {"CIRCLE_WORKFLOW_ID": "ab12", "CIRCLE_JOB": "qa", "CIRCLE_BUILD_NUM": "7"},
        {"CIRCLE_BUILD_NUM": "8"},
    ),
    "azure": (
        {"BUILD_BUILDID": "33", "SYSTEM_JOBNAME": "qa", "SYSTEM_JOBATTEMPT": "1"},
        {"SYSTEM_JOBATTEMPT": "2"},
    ),
    "buildkite": (
        {"BUILDKITE_BUILD_ID": "b-1", "BUILDKITE_STEP_ID": "s-1", "BUILDKITE_RETRY_COUNT": "0"},
        {"BUILDKITE_RETRY_COUNT": "1"},
    ),
}


def named(environ: dict[str, str], env: str = "staging", run_id: str | None = None) -> RunIdentity:
    return identify(environ, root=ROOT, env=env, given=run_id)


@pytest.mark.parametrize("ci", CIS)
def test_a_retried_job_is_a_new_run_within_the_same_boundary(ci: str) -> None:
    first, changed = CIS[ci]
    run, retry = named(first), named(first | changed)
    assert run == named(first), "the same in every process of the job"
    assert run.run_id != retry.run_id
    assert run.boundary == retry.boundary


@pytest.mark.parametrize("ci", CIS)
def test_another_pipeline_job_shard_or_environment_is_another_boundary(ci: str) -> None:
    first, _ = CIS[ci]
    pipeline, job = list(first)[:2]
    others = [
        named(first),
        named(first | {pipeline: "other"}),
        named(first | {job: "other"}),
        named(first | {"CAPTCHA_QA_SHARD": "2"}),
        named(first, env="qa"),
    ]
    assert len({one.boundary for one in others}) == len(others)


@pytest.mark.parametrize("ci", CIS)
def test_half_of_a_cis_variables_say_nothing(ci: str) -> None:
    first, _ = CIS[ci]
    pipeline = next(iter(first))
    assert named({pipeline: first[pipeline]}).boundary == named({}).boundary


def test_jenkins_gives_every_build_a_tag_of_its_own() -> None:
    assert named({"BUILD_TAG": "jenkins-shop-12"}).run_id == "jenkins-shop-12"


def test_a_run_id_that_was_given_goes_before_the_cis() -> None:
    run = named(CIS["gitlab"][0], run_id="nightly")
    assert (run.run_id, run.boundary) == ("nightly", named(CIS["gitlab"][0]).boundary)


def test_without_a_ci_the_run_is_named_at_random_and_bound_to_its_folder() -> None:
    one, two = named({}), named({})
    assert one.run_id != two.run_id
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}", one.run_id)
    assert one.boundary == two.boundary
    assert one.boundary != identify({}, root=Path("/srv/other"), env="staging").boundary


@pytest.mark.parametrize(
    ("environ", "shard"),
    [
        ({}, None),
        ({"CI_NODE_INDEX": "3"}, "3"),
        ({"CIRCLE_NODE_INDEX": "0"}, "0"),
        ({"BUILDKITE_PARALLEL_JOB": "1"}, "1"),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "2"}, "1"),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "1"}, None),
        ({"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "1"}, None),
        ({"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "4"}, "0"),
        ({"CAPTCHA_QA_SHARD": "linux", "CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "1"}, "linux"),
        ({"CAPTCHA_QA_SHARD": "linux", "CI_NODE_INDEX": "3"}, "linux"),
        ({"CAPTCHA_QA_SHARD": ""}, None),
    ],
)
def test_the_shard_is_what_the_ci_says(environ: dict[str, str], shard: str | None) -> None:
    assert named(environ).shard == shard


def test_the_cells_of_a_github_matrix_are_shards_of_one_run() -> None:
    job = CIS["github"][0]
    one, two = (named(job | {"CAPTCHA_QA_SHARD": cell}) for cell in ("py311", "py312"))
    assert one.run_id == two.run_id
    assert (one.shard, two.shard) == ("py311", "py312")
    assert one.boundary != two.boundary


@given(job=st.text(min_size=1, max_size=300))
def test_whatever_a_job_is_called_its_run_has_a_usable_name(job: str) -> None:
    run = named({"CI_PIPELINE_ID": "71", "CI_JOB_NAME": job, "CI_JOB_ID": "900"})
    assert _RUN_ID.match(run.run_id)
    assert run.run_id.startswith("71")
    assert run.run_id.endswith("900")
    assert len(run.run_id) <= 80


@pytest.mark.parametrize("tag", ["Проверка форм", "...", "-"])
def test_a_name_without_a_usable_letter_is_replaced(tag: str) -> None:
    assert _RUN_ID.match(named({"BUILD_TAG": tag}).run_id)


def test_a_long_tag_keeps_its_number() -> None:
    assert named({"BUILD_TAG": f"jenkins-{'folder-' * 30}shop-12"}).run_id.endswith("shop-12")
