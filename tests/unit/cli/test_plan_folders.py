"""`plan` for many folders of a repository: each folder fails alone, and the summary begins with
what failed. The cluster is simulated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.change import Change
from kafkaform.core.clock import SystemClock
from kafkaform.core.finding import Finding
from kafkaform.core.resource import Identity
from kafkaform.provider.contract import LookBounds
from kafkaform_kafka.impact import looks
from kafkaform_kafka.provider import KafkaProvider

from ...kit.commands.here import Here
from ...kit.simulated.repository import (
    FILE,
    CountingProvider,
    simulate_kafka,
    write_repository,
    write_topics,
)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> CountingProvider:
    return simulate_kafka(monkeypatch)


@pytest.fixture
def top(here: Here, kafka: CountingProvider) -> Here:
    """The top of a repository of three folders."""
    write_repository(here.path, "pay", "shop", "web")
    return here


def apply_alone(here: Here, folder: str) -> None:
    """Apply one folder of the repository in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here.path / folder)
        here.done("apply", "--auto-approve")


def read_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_folders_are_planned(top: Here) -> None:
    """The summary is a table; below it, each plan that has something to read."""
    apply_alone(top, "teams/shop")
    said = top.done("plan", "--all")
    assert said.out.splitlines()[:3] == [
        "folder     owner  create  change  destroy  dangers",
        "teams/pay  pay         1       ·        ·        ·",
        "teams/web  web         1       ·        ·        ·",
    ]
    assert said.out.count("Plan: 1 to add, 0 to change, 0 to destroy.") == 2
    assert "── teams/shop" not in said.out
    idle, counts, approval, _, following = said.out.splitlines()[-5:]
    assert idle == "1 folder has no changes."
    assert counts == "Plan of 2 folders: 2 to add, 0 to change, 0 to destroy."
    digest = approval.removeprefix("Approval: ")
    assert following == f"Next: kafkaform apply --all --expect {digest}"
    assert "kafkaform: teams/pay: 1 to add, 0 to change, 0 to destroy" in said.err
    assert "kafkaform: teams/shop: no changes" in said.err


def test_all_folders_share_the_time_for_looks(top: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first folder leaves is the second one's, and a folder for which nothing is left says
    so; with --impact full each folder is looked at, and so is a folder that is planned alone."""
    times, asked = [0.0], list[tuple[str, LookBounds]]()

    def find(
        _: object, changes: Sequence[Change], bounds: LookBounds
    ) -> Sequence[tuple[Identity | None, Finding]]:
        times[0] += 3.0
        asked.extend((change.identity.key, bounds) for change in changes)
        return ()

    monkeypatch.setattr(looks, "find_consequences", find)
    monkeypatch.setattr(CountingProvider, "consequences", KafkaProvider.consequences)
    monkeypatch.setattr(SystemClock, "monotonic", staticmethod(lambda: times[0]))
    removed = "removed {\n  from = kafka_topic.a\n  lifecycle {\n    destroy = true\n  }\n}\n"
    for team in ("pay", "shop", "web"):
        write_topics(top.path, team, f"{team}.a", f"{team}.b")
        apply_alone(top, f"teams/{team}")
        folder = write_topics(top.path, team, f"{team}.b")
        (folder / "removed.kf.hcl").write_text(removed)
    said = top.done("plan", "--all")
    assert asked == [("pay.a", LookBounds(5.0, 500)), ("shop.a", LookBounds(2.0, 499))]
    shop, web = said.out.partition("── teams/web")[::2]
    unasked = "the plans of other folders have used up what a run has for that"
    assert unasked in " ".join(web.split()) and unasked not in " ".join(shop.split())
    assert "Plan this folder alone, or with --impact full" in " ".join(web.split())
    asked.clear()
    top.done("plan", "--all", "--impact", "full")
    assert asked == [(f"{team}.a", LookBounds(None, None)) for team in ("pay", "shop", "web")]
    asked.clear()
    top.done("plan", "--folder", "teams/web")
    assert asked == [("web.a", LookBounds(5.0, 500))]


def test_globs_choose_folders(top: Here) -> None:
    """Others are not planned."""
    said = top.done("plan", "--folder", "teams/w*")
    assert "── teams/web" in said.out and "teams/pay" not in said.out


def test_a_folder_fails_alone(top: Here) -> None:
    """One that does not parse, and one whose state cannot be read: the others are planned, and the
    summary begins with what failed."""
    top.write("teams/pay/main.kf.hcl", 'resource "kafka_topic" "a" {\n  name = "pay\n}\n')
    top.write("teams/shop/kafkaform.state.json", "no state")
    said = top.run("plan", "--all")
    assert said.code == 9, said.text
    assert said.out.startswith(
        "2 of 3 folders of acme cannot be planned\n"
        "  ! teams/pay: the configuration has faults: main.kf.hcl:2:10: Unclosed string\n"
        "  ! teams/shop:"
    )
    assert "── teams/web" in said.out and "Plan of 1 folder: 1 to add" in said.out
    assert "on teams/pay/main.kf.hcl:2:10" in said.err
    assert "teams/shop: " in said.err


def test_a_cluster_that_does_not_answer_fails_its_folders(top: Here, kafka: Any) -> None:
    """With one error for all folders that need it."""
    kafka.cluster.users.clear()
    said = top.run("plan", "--all")
    assert said.code == 1
    assert said.out.startswith("3 of 3 folders of acme cannot be planned\n")
    assert said.err.count("Error: ") == 1
    assert "Error: teams/pay, teams/shop, teams/web: the login of admin was refused" in said.err


def test_a_fault_of_the_file_stops_everything(top: Here, kafka: CountingProvider) -> None:
    """All of its faults at once; nothing is planned and nobody is asked."""
    text = FILE.replace("cluster.prod", "cluster.pord").replace("owner", "ower")
    top.write("kafkaform.hcl", text)
    failure = top.fails("plan", "--all")
    assert 'There is no cluster "pord"' in failure and '"ower"' in failure
    assert "Plan" not in failure and not kafka.opened


def test_json_lines_name_their_folder(top: Here) -> None:
    """The last line is the summary of the repository, also of what failed."""
    top.write("teams/pay/main.kf.hcl", 'resource "kafka_topic" "a" {\n  name = "pay\n}\n')
    said = top.run("plan", "--all", "--json")
    assert said.code == 1
    lines = read_lines(said.out)
    kinds = {(line.get("folder"), line["type"]) for line in lines}
    assert ("teams/shop", "planned_change") in kinds and ("teams/web", "change_summary") in kinds
    assert ("teams/pay", "diagnostic") in kinds and (None, "version") in kinds
    last = lines[-1]
    assert last["type"] == "repository_summary" and "folder" not in last
    assert last["@message"] == (
        "1 folder cannot be planned. Plan of 2 folders: 2 to add, 0 to change, 0 to destroy."
    )
    repository = last["repository"]
    assert (repository["name"], repository["add"], repository["failed"]) == ("acme", 2, 1)
    (pay, shop, web) = repository["folders"]
    assert (pay["planned"], pay["exit_code"]) == (False, 1)
    assert pay["error"].startswith("the configuration has faults: main.kf.hcl:2:10: ")
    assert (shop["owner"], shop["add"], shop["applicable"]) == ("shop", 1, True)
    tokens = {
        line["folder"]: line["changes"]["kafkaform"]["token"]
        for line in lines
        if line["type"] == "change_summary"
    }
    assert tokens == {"teams/shop": shop["token"], "teams/web": web["token"]}


def test_exit_codes(top: Here) -> None:
    """--detailed-exitcode says whether there are changes, and an error is graver. A condition of
    --fail-on blocks the folders that meet it."""
    assert top.run("plan", "--all", "--detailed-exitcode").code == 2
    apply_alone(top, "teams/shop")
    assert top.run("plan", "--folder=teams/s*", "--detailed-exitcode").code == 0
    write_topics(top.path, "shop", "shop.a", more='config = { "retention.ms" = "1000" }')
    said = top.run("plan", "--all", "--fail-on=data-loss")
    assert said.code == 8
    assert "Error: teams/shop: --fail-on: the plan has a risk (data loss)" in said.text
    assert "teams/pay: --fail-on" not in said.text
    top.write("teams/pay/main.kf.hcl", "resource {\n")
    assert top.run("plan", "--all", "--detailed-exitcode").code == 1
    assert "is not a condition" in top.fails("plan", "--all", "--fail-on", "deletez")


def test_the_approval_covers_every_folder(top: Here, tmp_path: Path) -> None:
    """Its file has the digest and a line for each folder with changes; the token of a folder is
    that of its own plan."""
    apply_alone(top, "teams/shop")
    said = top.done("plan", "--all", "--approval-out", "all.txt")
    digest, *lines = (tmp_path / "all.txt").read_text().splitlines()
    assert f"Approval: {digest}" in said.out.splitlines()
    assert [line.split()[1] for line in lines] == ["teams/pay", "teams/web"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "teams/pay")
        alone = top.done("plan", "--approval-out", "own.txt")
        assert lines[0].split()[0] == Path("own.txt").read_text().strip(), alone.text
        Path("own.txt").unlink()


def test_flags_that_are_about_one_folder(top: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault says why."""
    for flag in ("--target=kafka_topic.a", "--exclude=kafka_topic.a"):
        assert "chooses objects of one folder" in top.fails("plan", "--all", flag)
    saved = top.fails("plan", "--all", "--out=p")
    assert "--out cannot be combined with --all: a saved plan is the plan of one folder" in saved
    assert "`apply --all --expect FILE`" in saved and not (top.path / "p").exists()
    assert "each folder of a repository has a state of its own" in top.fails(
        "plan", "--folder=teams/*", "--state=x.json"
    )
    assert "matches no object of any folder" in top.fails("plan", "--all", "--adopt=kafka_topic.x")
    assert "exclude each other" in top.fails("plan", "--all", "--folder=teams/*")
    monkeypatch.setenv("KAFKAFORM_STATE", "x.json")
    assert "KAFKAFORM_STATE names one state" in top.fails("plan", "--all")


def test_addresses_count_in_the_folders_that_have_them(top: Here, kafka: CountingProvider) -> None:
    """`--adopt` takes over live topics in one folder, and is no error in the others."""
    apply_alone(top, "teams/shop")
    (top.path / "teams/shop/kafkaform.state.json").unlink()
    (top.path / "teams/shop/kafkaform.audit.jsonl").unlink()
    top.write("teams/web/main.kf.hcl", 'output "a" {\n  value = 1\n}\n')
    assert top.run("plan", "--all").code == 8
    said = top.done("plan", "--all", "--adopt", "kafka_topic.a")
    assert "1 to adopt" in said.out


def test_a_dry_run_is_shown_with_the_plan_of_its_folder(top: Here) -> None:
    """As `plan --validate` in the folder shows it, in text and in JSON lines."""
    apply_alone(top, "teams/shop")
    text = top.done("plan", "--all", "--validate").out
    (pay, web) = text.split("── teams/web")
    assert "kafka_topic.a (pay.a): checked by the broker" in pay
    assert "kafka_topic.a (web.a): checked by the broker" in web
    lines = read_lines(top.done("plan", "--all", "--validate", "--json").out)
    checked = [line["folder"] for line in lines if line["type"] == "validation"]
    assert checked == ["teams/pay", "teams/web"]


def test_one_comment_covers_all_folders(top: Here, tmp_path: Path) -> None:
    """It names what failed, the command that applies all of it, and a section for each folder."""
    top.write("teams/pay/main.kf.hcl", 'resource "kafka_topic" "a" {\n  name = "pay\n}\n')
    said = top.run("plan", "--all", "--comment=all.md", "--comment-name=prod", "--html=all.html")
    text = (tmp_path / "all.md").read_text()
    assert text.startswith("## kafkaform plan of 2 folders of `prod`: 2 to add, ")
    assert "- **`teams/pay` failed**: the configuration has faults" in text
    (command,) = [line for line in said.out.splitlines() if line.startswith("Next: ")]
    assert command.removeprefix("Next: ") in text
    assert "### `teams/shop`: 1 to add" in text
    page = (tmp_path / "all.html").read_text()
    assert "<h2>teams/shop" in page and "<code>teams/pay</code> failed" in page


def test_an_object_of_two_folders_fails_both(top: Here, kafka: CountingProvider) -> None:
    """With both places, before they are planned; the third folder is planned."""
    write_topics(top.path, "web", "pay.a")
    said = top.run("plan", "--all")
    assert said.code == 1, said.text
    assert said.text.startswith(
        "2 of 3 folders of acme cannot be planned "
        "! teams/pay: another folder has 1 object of it, too: main.kf.hcl:1:1: kafka_topic pay.a "
        "is declared here, and another folder has it, too: teams/web (teams/web/main.kf.hcl:1) "
    )
    assert "! teams/web: another folder has 1 object of it, too: main.kf.hcl:1:1: " in said.text
    assert "── teams/shop" in said.out
    assert "on teams/pay/main.kf.hcl:1:1" in said.err
    assert "another folder has it, too: teams/pay (teams/pay/main.kf.hcl:1)" in said.err
    assert not top.run("plan", "--folder", "teams/web").code


def test_an_object_in_the_state_of_another_folder(top: Here) -> None:
    """The next plan of that folder would delete it, so both fail until it forgets it."""
    write_topics(top.path, "pay", "pay.a", "pay.b")
    apply_alone(top, "teams/pay")
    write_topics(top.path, "pay", "pay.b")
    block = 'resource "kafka_topic" "pay" {\n  name = "pay.a"\n'
    top.write("teams/web/more.kf.hcl", f"{block}}}\n")
    said = top.run("plan", "--all")
    assert said.code == 1, said.text
    state = top.path / "teams/pay/kafkaform.state.json"
    assert f"teams/pay (recorded in {state})" in " ".join(said.err.replace("│", " ").split())
    top.write("teams/pay/more.kf.hcl", "removed {\n  from = kafka_topic.a\n}\n")
    top.write("teams/web/more.kf.hcl", f"{block}  lifecycle {{\n    adopt = true\n  }}\n}}\n")
    said = top.done("plan", "--all", "--comment=moved.md")
    pay, shop, web = said.out.splitlines()[1:4]
    assert pay.split() == ["teams/pay", "pay", *"····", "1", "to", "forget"]
    assert shop.split() == ["teams/shop", "shop", *"1···"]
    assert web.split()[-3:] == ["1", "to", "adopt"]
    counts = "2 to add, 0 to change, 0 to destroy, 1 to adopt, 1 to forget"
    assert f"Plan of 3 folders: {counts}." in said.out
    assert f"`acme`: {counts}" in (top.path / "moved.md").read_text()
    moved = " ".join(said.out.split())
    assert "(pay.a) will be forgotten" in moved and "(pay.a) will be adopted" in moved


def test_two_addresses_of_one_cluster(top: Here) -> None:
    """The id of the cluster that answers decides."""
    write_topics(top.path, "web", "pay.a")
    block = 'provider "kafka" {\n  bootstrap_servers = ["other:9092"]\n}\n'
    top.write("teams/web/provider.kf.hcl", block)
    assert top.done("validate", "--all")
    said = top.run("plan", "--all")
    assert said.code == 1 and "object-in-two-folders" in said.err


def test_an_object_that_a_folder_has_that_was_not_chosen(top: Here) -> None:
    """What a state records counts, with the line of its block; once the folder lets it go, the
    chosen one can have it."""
    apply_alone(top, "teams/pay")
    write_topics(top.path, "web", "pay.a")
    (top.path / "teams/shop/kafkaform.state.json").write_text("no state")
    for command in (("plan",), ("apply", "--auto-approve")):
        said = top.run(*command, "--folder", "teams/web")
        assert said.code == 1, said.text
        assert "another folder has it, too: teams/pay (teams/pay/main.kf.hcl:1)" in said.err
        assert "Whether teams/shop has objects of these folders is unknown: " in said.err
    top.write("teams/pay/main.kf.hcl", "resource {\n")
    said = top.run("plan", "--folder", "teams/web")
    state = top.path / "teams/pay/kafkaform.state.json"
    assert f"teams/pay (recorded in {state})" in " ".join(said.err.replace("│", " ").split())
    top.write("teams/pay/main.kf.hcl", "removed {\n  from = kafka_topic.a\n}\n")
    write_topics(top.path, "web", "pay.a", more="lifecycle {\n    adopt = true\n  }")
    assert "1 to adopt" in top.done("plan", "--folder", "teams/web").out


def test_a_shared_object_is_no_conflict_with_a_folder_that_was_not_chosen(top: Here) -> None:
    """Nor is what it only declares: whoever applies it later finds it in the state."""
    block = (
        'resource "kafka_acl" "a" {\n  resource_type = "Group"\n  resource_name = "mirror"\n'
        '  acl_principal = "User:mirror"\n  acl_host = "*"\n  acl_operation = "Read"\n'
        '  acl_permission_type = "Allow"\n  lifecycle {\n    shared = true\n  }\n}\n'
    )
    top.write("teams/pay/main.kf.hcl", block)
    top.write("teams/web/main.kf.hcl", block)
    apply_alone(top, "teams/pay")
    assert "1 to adopt" in top.done("plan", "--folder", "teams/web").out
    top.write("teams/web/main.kf.hcl", block.replace("    shared = true\n", "    adopt = true\n"))
    assert "another folder has it, too" in top.fails("plan", "--folder", "teams/web")
    write_topics(top.path, "web", "shop.a")
    assert "1 to add" in top.done("plan", "--folder", "teams/web").out


def test_what_a_folder_owns_that_was_not_chosen_is_managed(
    top: Here, kafka: CountingProvider
) -> None:
    """Whatever its provider block is called there. Only what no folder owns is listed as not
    managed, in a plan and in the plan of an apply."""
    block = (
        'provider "kafka" {\n  alias             = "own"\n  bootstrap_servers = ["prod:9093"]\n}\n'
    )
    top.write("teams/pay/provider.kf.hcl", block)
    pay = top.path / "teams/pay/main.kf.hcl"
    pay.write_text(pay.read_text().replace("{\n", "{\n  provider   = kafka.own\n", 1))
    apply_alone(top, "teams/pay")
    kafka.cluster.outside.create("foreign")
    for command in (("plan",), ("apply", "--auto-approve")):
        text = top.done(*command, "--folder", "teams/web", "--detail").out
        title, objects = "Not managed by this configuration", '1 kafka_topic on kafka: "foreign"'
        assert f"{title}\n  {objects}\n" in text and "pay.a" not in text
