"""`test` and `state list` for many folders of a repository. The cluster is simulated."""

from __future__ import annotations

import json

import pytest

from ...kit.commands.here import Here
from ...kit.simulated.repository import simulate_kafka, write_repository

PASSES = """run "plan" {
  command = plan

  assert {
    condition     = plan.counts.add == 1
    error_message = "one topic"
  }
}
"""


@pytest.fixture
def top(here: Here) -> Here:
    """The top of a repository of three folders."""
    write_repository(here.path, "pay", "shop", "web")
    return here


def test_the_tests_of_all_folders_run(top: Here) -> None:
    """Files have the paths of their folders, also in reports; folders without tests are left
    out."""
    top.write("teams/pay/tests/main.kftest.hcl", PASSES)
    top.write("teams/shop/all.kftest.hcl", PASSES.replace("== 1", "== 2"))
    said = top.run("test", "--all", "--junit=report.xml")
    assert said.code == 1
    assert "teams/pay/tests/main.kftest.hcl" in said.out and "teams/web" not in said.out
    assert "on teams/shop/all.kftest.hcl:5" in said.text
    report = (top.path / "report.xml").read_text()
    assert 'name="teams/shop/all.kftest.hcl"' in report and 'failures="1"' in report
    assert top.run("test", "--folder", "teams/p*").code == 0


def test_a_folder_that_does_not_parse_is_one_error(top: Here) -> None:
    """The tests of the others run."""
    for name in ("pay", "shop"):
        top.write(f"teams/{name}/a.kftest.hcl", PASSES)
    top.write("teams/pay/main.kf.hcl", 'resource "kafka_topic" "a" {\n  name = "pay\n}\n')
    said = top.run("test", "--all")
    assert said.code == 1
    assert "on teams/pay/main.kf.hcl:2:10" in said.text
    lines = [json.loads(line) for line in top.run("test", "--all", "--json").out.splitlines()]
    assert lines[-1]["type"] == "test_summary"


def test_filters_count_over_all_folders(top: Here) -> None:
    """A glob that matches no run anywhere is a typing error."""
    top.write("teams/pay/a.kftest.hcl", PASSES)
    top.write("teams/shop/a.kftest.hcl", PASSES.replace('"plan"', '"other"'))
    assert top.run("test", "--all", "--filter", "other").code == 0
    assert "matches no run of any folder" in top.fails("test", "--all", "--filter", "x")
    assert "cannot be combined" in top.fails("test", "--all", "teams/pay/a.kftest.hcl")
    (top.path / "teams/pay/a.kftest.hcl").unlink()
    (top.path / "teams/shop/a.kftest.hcl").unlink()
    assert "none of these folders has a test file" in top.fails("test", "--all")


def test_addresses_of_all_folders(top: Here) -> None:
    """Each after the path of its folder; a state that cannot be read fails alone."""
    simulate_kafka(top.monkeypatch)
    for name in ("pay", "shop"):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(top.path / "teams" / name)
            top.done("apply", "--auto-approve")
    expected = "teams/pay: kafka_topic.a\nteams/shop: kafka_topic.a\n"
    assert top.done("state", "list", "--all").out == expected
    assert top.done("state", "list", "kafka_acl.*", "--all").out == ""
    top.write("teams/shop/kafkaform.state.json", "no state")
    said = top.run("state", "list", "--all")
    assert (said.code, said.out) == (9, "teams/pay: kafka_topic.a\n")
    assert "teams/shop: " in said.err
    assert "each folder of a repository" in top.fails("state", "list", "--all", "--state=x")
    assert top.run("state", "list", "--folder=teams/p*").code == 0
