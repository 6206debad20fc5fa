"""What an earlier run has left is not taken for what this one found."""

from __future__ import annotations

from pytest_captcha_qa.plugin.exits import findings_beside, forget_earlier, verdict_beside


def test_findings_stand_beside_the_verdict_of_their_shard(tmp_path):
    assert findings_beside(verdict_beside(tmp_path / "records", None)) == tmp_path / "conformance.sarif"
    assert findings_beside(verdict_beside(tmp_path / "records", "2")) == tmp_path / "conformance-2.sarif"


def test_findings_of_an_earlier_run_go_only_where_this_one_probes(tmp_path):
    verdict = tmp_path / "verdict.json"
    for path in (verdict, findings_beside(verdict)):
        path.write_text("{}")
    forget_earlier(verdict)
    assert [path.name for path in tmp_path.iterdir()] == ["conformance.sarif"]
    forget_earlier(verdict, findings=True)
    assert not list(tmp_path.iterdir())
