"""`apply` and `destroy` for many folders of a repository: one question, each folder with its own
run, in the order of the outputs that they read. The cluster is simulated."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafkaform.cli.terminal.console import Console
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import Interrupted, StorageError
from kafkaform.state.backends.local import LocalBackend
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.repository import applying
from kafkaform.workflow.workspace import make_lock_info

from ...kit.commands.here import Here
from ...kit.simulated.repository import (
    FILE,
    CountingProvider,
    simulate_kafka,
    write_repository,
    write_topics,
)

READ = 'data "kafkaform_outputs" "platform" {\n  folder = "../platform"\n}\n'


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> CountingProvider:
    return simulate_kafka(monkeypatch)


@pytest.fixture
def top(here: Here, kafka: CountingProvider) -> Here:
    """The top of a repository of three folders."""
    write_repository(here.path, "pay", "shop", "web")
    return here


@pytest.fixture
def chain(here: Here, kafka: CountingProvider) -> Here:
    """`app` reads outputs of `platform`, and `report` those of `app`; `alone` reads none."""
    write_repository(here.path, "alone")
    write_platform(here, "1000")
    for name, source in (("app", "platform"), ("report", "app")):
        outputs = f"data.kafkaform_outputs.{source}.outputs"
        write_topics(
            here.path,
            name,
            f"{name}.a",
            more=f'config = {{ "retention.ms" = {outputs}.retention }}',
        )
        here.write(
            f"teams/{name}/outputs.kf.hcl",
            READ.replace("platform", source)
            + f'output "retention" {{\n  value = {outputs}.retention\n}}\n',
        )
    return here


def write_platform(here: Here, retention: str) -> None:
    folder = write_topics(here.path, "platform", "platform.a")
    (folder / "outputs.kf.hcl").write_text(f'output "retention" {{\n  value = "{retention}"\n}}\n')


def write_computed(here: Here) -> None:
    """Only an apply shows the output of `platform`, which becomes 2000."""
    topic = 'resource "kafka_topic" "new" {\n  name = "platform.new"\n}\n'
    value = 'kafka_topic.new.topic_id == "" ? "1000" : "2000"'
    text = f'{topic}output "retention" {{\n  value = {value}\n}}\n'
    here.write("teams/platform/outputs.kf.hcl", text)


def read_retention(kafka: CountingProvider, topic: str) -> str:
    """The config of a topic of the simulated cluster."""
    return str(kafka.cluster.topics[topic].config["retention.ms"])


def list_topics(kafka: CountingProvider) -> list[str]:
    return sorted(kafka.cluster.topics)


def read_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def read_state(here: Here, name: str) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(
        (here.path / "teams" / name / "kafkaform.state.json").read_text()
    )
    return state


def test_all_folders_are_applied_after_one_question(top: Here, kafka: CountingProvider) -> None:
    """Each with a state and a log of its own. A second run has nothing to send."""
    said = top.done("apply", "--all", "--auto-approve")
    assert list_topics(kafka) == ["pay.a", "shop.a", "web.a"]
    assert said.out.startswith("folder      owner  create  change  destroy  dangers\n")
    assert said.out.endswith("Applied in 3 folders: 3 added, 0 changed, 0 destroyed.\n")
    for name in ("pay", "shop", "web"):
        assert f'"{name}.a"' in json.dumps(read_state(top, name)["objects"])
        assert (top.path / "teams" / name / "kafkaform.audit.jsonl").exists()
    again = top.done("apply", "--all", "--auto-approve")
    assert again.out == "\n3 folders had nothing to send.\n"


def test_globs_choose_folders(top: Here, kafka: CountingProvider) -> None:
    top.done("apply", "--folder", "teams/s*", "--auto-approve")
    assert list_topics(kafka) == ["shop.a"]


def test_nobody_approves(top: Here, kafka: CountingProvider) -> None:
    """Without a terminal somebody has to say how the plans were approved; all plans are shown."""
    said = top.run("apply", "--all")
    assert said.code == 1 and "No terminal to ask for approval" in said.err
    assert "── teams/web" in said.out and not list_topics(kafka)
    assert not (top.path / "teams/pay/kafkaform.audit.jsonl").exists()


def test_a_folder_fails_alone(top: Here, kafka: CountingProvider) -> None:
    """The others are applied, the summary begins with what failed, and the gravest code counts."""
    top.write("teams/pay/main.kf.hcl", 'resource "kafka_topic" "a" {\n  name = "pay\n}\n')
    top.write("teams/shop/kafkaform.state.json", "no state")
    said = top.run("apply", "--all", "--auto-approve")
    assert said.code == 9
    assert list_topics(kafka) == ["web.a"]
    end = said.out.rpartition("\n2 of 3 folders failed\n")[2]
    assert end.startswith("  ! teams/pay: the configuration has faults\n  ! teams/shop:")
    assert end.endswith("\n\nApplied in 1 folder: 1 added, 0 changed, 0 destroyed.\n")
    assert "on teams/pay/main.kf.hcl:2:10" in said.err


def test_a_locked_folder_fails_alone(top: Here, kafka: CountingProvider) -> None:
    backend = LocalBackend(top.path / "teams/shop/kafkaform.state.json")
    with backend.lock(make_lock_info("run", "apply", "now"), 0, SystemClock()):
        said = top.run("apply", "--all", "--auto-approve")
    assert said.code == 7 and "  ! teams/shop:" in said.out
    assert list_topics(kafka) == ["pay.a", "web.a"]


def test_an_object_of_two_folders_is_applied_by_none(top: Here, kafka: CountingProvider) -> None:
    """Both fail before anything is sent, and the third is applied."""
    write_topics(top.path, "web", "pay.a")
    said = top.run("apply", "--all", "--auto-approve")
    assert said.code == 1
    assert "  ! teams/pay: another folder has 1 object of it, too" in said.out
    assert "  ! teams/web: another folder has 1 object of it, too" in said.out
    assert list_topics(kafka) == ["shop.a"]
    assert not (top.path / "teams/pay/kafkaform.audit.jsonl").exists()


# ── questions on a terminal ─────────────────────────────────────────────────────────────


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What somebody types on a terminal, one answer after the other; then what was asked."""
    typed: list[str] = []
    asked = Console(colour=False, errors_colour=False, interactive=True, width=100)
    monkeypatch.setattr(Console, "make_standard", lambda **_: asked)
    monkeypatch.setattr(Console, "ask", lambda _, question: typed.pop(0))
    return typed


@pytest.mark.parametrize("answer", ["no", "y", ""])
def test_only_yes_approves(
    top: Here, kafka: CountingProvider, answers: list[str], answer: str
) -> None:
    answers.append(answer)
    assert "not approved; nothing was sent" in top.fails("apply", "--all")
    assert not list_topics(kafka) and not answers


def test_one_question_approves_all(top: Here, kafka: CountingProvider, answers: list[str]) -> None:
    """Nobody is asked if there is nothing to apply."""
    answers.append("yes")
    top.done("apply", "--all")
    assert list_topics(kafka) == ["pay.a", "shop.a", "web.a"] and not answers
    top.done("apply", "--all")


def test_a_plan_with_new_outputs_is_asked_about(
    chain: Here, kafka: CountingProvider, answers: list[str]
) -> None:
    """If only the apply shows them. It is shown before the question; a refusal keeps that folder,
    and those behind it, as they are."""
    chain.done("apply", "--all", "--auto-approve")
    write_computed(chain)
    answers += ["yes", "no"]
    said = chain.run("apply", "--all")
    assert said.code == 1 and "! teams/app: not approved; nothing was sent" in said.out
    assert '"1000" → "2000"' in said.out.partition("── teams/app")[2]
    assert read_retention(kafka, "report.a") == "1000"
    answers += ["yes", "yes"]
    chain.done("apply", "--all")
    assert read_retention(kafka, "report.a") == "2000"


def test_a_destroy_asks_for_the_cluster_once(
    top: Here, kafka: CountingProvider, answers: list[str]
) -> None:
    top.done("apply", "--all", "--auto-approve")
    answers.append("another")
    top.fails("destroy", "--all")
    assert len(list_topics(kafka)) == 3
    answers.append(read_state(top, "pay")["providers"]["kafka"])
    top.done("destroy", "--all")
    assert not list_topics(kafka) and not answers


def test_a_blocked_plan_is_shown_although_nobody_is_asked(
    top: Here, kafka: CountingProvider
) -> None:
    """Its error speaks of what is above it. Another folder is applied, so there both are shown."""
    top.done("apply", "--folder=teams/shop", "--auto-approve")
    for name in ("kafkaform.state.json", "kafkaform.audit.jsonl"):
        (top.path / "teams/shop" / name).unlink()
    for folders in ("teams/shop", "teams/*"):
        said = top.run("apply", "--folder", folders, "--auto-approve")
        assert said.code == 8 and said.out.count("kafka_topic.a (shop.a) would be") == 1, said.text
        assert said.out.index("! blocked: ") < said.out.index("  ! teams/shop: 1 object is blocked")
    assert list_topics(kafka) == ["pay.a", "shop.a", "web.a"]


# ── approvals ───────────────────────────────────────────────────────────────────────────


def commit_all(top: Here) -> None:
    """Everything that is there is a commit of `main`."""
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first")):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(("git", *identity, *words), cwd=top.path, check=True)


def approve(top: Here) -> tuple[str, Path]:
    """The digest of all plans, and the file that has it."""
    file = top.path.parent / f"{top.path.name}-approval"
    top.done("plan", "--all", "--approval-out", str(file))
    return file.read_text().splitlines()[0], file


@pytest.mark.parametrize("form", ["digest", "file"])
def test_what_was_reviewed_is_applied(top: Here, kafka: CountingProvider, form: str) -> None:
    digest, file = approve(top)
    top.done("apply", "--all", "--expect", digest if form == "digest" else str(file))
    assert list_topics(kafka) == ["pay.a", "shop.a", "web.a"]


def test_a_digest_approves_all_or_nothing(top: Here, kafka: CountingProvider) -> None:
    digest, _ = approve(top)
    write_topics(top.path, "shop", "shop.b")
    said = top.run("apply", "--all", "--expect", digest)
    assert said.code == 4 and digest in said.err
    assert not list_topics(kafka)


def test_a_file_refuses_what_differs_alone(top: Here, kafka: CountingProvider) -> None:
    """A folder whose plan is another one, and one that had no changes when it was reviewed."""
    top.done("apply", "--folder=teams/web", "--auto-approve")
    _, file = approve(top)
    write_topics(top.path, "shop", "shop.b")
    write_topics(top.path, "web", "web.a", "web.b")
    said = top.run("apply", "--all", "--expect", str(file))
    assert said.code == 4
    assert list_topics(kafka) == ["pay.a", "web.a"]
    assert "  ! teams/shop: this is not the plan that was approved" in said.out
    assert "  ! teams/web: this plan was not approved" in said.out


def test_an_approval_does_not_lift_a_conflict(top: Here, kafka: CountingProvider) -> None:
    """Another folder got the same topic after the review."""
    _, file = approve(top)
    write_topics(top.path, "web", "pay.a")
    said = top.run("apply", "--all", "--expect", str(file))
    assert said.code == 1
    assert list_topics(kafka) == ["shop.a"]
    assert "object-in-two-folders" in said.err


def test_a_file_can_be_applied_twice(top: Here, kafka: CountingProvider) -> None:
    """As a pipeline does that is started again: what is applied stays applied."""
    _, file = approve(top)
    top.done("apply", "--folder=teams/pay", "--auto-approve")
    top.done("apply", "--all", "--expect", str(file))
    said = top.done("apply", "--all", "--expect", str(file))
    assert "Already applied by run" in said.err
    assert list_topics(kafka) == ["pay.a", "shop.a", "web.a"]


def test_a_reviewed_folder_need_not_have_changed_since(top: Here, kafka: CountingProvider) -> None:
    """A merge queue plans what is merged before it, too. If that is applied already, nothing is to
    be done; a folder that is gone is refused."""
    commit_all(top)
    with (top.path / "teams/web/main.kf.hcl").open("a") as text:
        text.write("# changed\n")
    _, file = approve(top)
    top.done("apply", "--folder=teams/pay", "--auto-approve")
    words = ("apply", "--all", "--changed-since=HEAD", "--expect", str(file))
    assert "Already applied by run" in top.done(*words).err
    assert list_topics(kafka) == ["pay.a", "shop.a", "web.a"]
    (top.path / "teams/shop/main.kf.hcl").unlink()
    assert "the approval has a plan of teams/shop" in top.fails(*words, code=4)


def test_an_approval_that_does_not_fit(top: Here, kafka: CountingProvider) -> None:
    """Each with its reason; nothing is sent."""
    digest, file = approve(top)
    token = file.read_text().splitlines()[1].split()[0]
    assert "the approval of one folder" in top.fails("apply", "--all", "--expect", token)
    assert "cannot be read as a file" in top.fails("apply", "--all", "--expect", "nowhere")
    other = top.fails("apply", "--folder=teams/pay", "--expect", str(file), code=4)
    assert "teams/shop, and the command is not about that folder" in other
    file.write_text(file.read_text().replace("teams/web", "teams/wep"))
    assert "as it was written" in top.fails("apply", "--all", "--expect", str(file))
    assert digest and not list_topics(kafka)


# ── outputs from folder to folder ───────────────────────────────────────────────────────


def test_the_folder_that_provides_comes_first(chain: Here, kafka: CountingProvider) -> None:
    """Nothing has a state yet, so `app` and `report` are planned with what will be recorded."""
    said = chain.done("apply", "--all", "--auto-approve")
    assert list_topics(kafka) == ["alone.a", "app.a", "platform.a", "report.a"]
    assert "skipped" not in said.out
    assert said.out.index("── teams/platform") < said.out.rindex("── teams/app")
    assert said.out.rindex("── teams/app") < said.out.rindex("── teams/report")
    assert read_retention(kafka, "report.a") == "1000"


def test_a_plan_says_what_waits_for_outputs(chain: Here) -> None:
    """It is no fault of a folder that only an apply shows what it reads; its own faults are."""
    write_computed(chain)
    said = chain.run("plan", "--all", "--detailed-exitcode")
    assert said.code == 2
    assert "teams/app is skipped: it can be planned when teams/platform is applied" in said.out
    assert "teams/report is skipped: it can be planned when teams/app is applied" in said.out
    chain.write("teams/app/more.kf.hcl", "locals {\n  a = var.missing\n}\n")
    failure = chain.fails("plan", "--all")
    assert "! teams/app: the configuration has faults" in failure
    assert "! teams/report: the configuration has faults" in failure
    chain.write("teams/app/more.kf.hcl", "")
    assert "has no state yet" in chain.fails("plan", "--folder=teams/app")


def test_a_plan_shows_a_circle(chain: Here) -> None:
    chain.write("teams/platform/back.kf.hcl", READ.replace("platform", "app"))
    failure = chain.fails("plan", "--all")
    assert "teams/app needs its own outputs, through other folders" in failure
    assert "teams/platform (teams/platform/back.kf.hcl:1:1) → teams/app" in failure


def test_new_outputs_are_used_in_the_same_run(chain: Here, kafka: CountingProvider) -> None:
    """A plan shows what follows from the value that will be recorded; the apply does that."""
    chain.done("apply", "--all", "--auto-approve")
    write_platform(chain, "2000")
    planned = chain.done("plan", "--all")
    assert "── teams/app" in planned.out and "── teams/report" in planned.out
    chain.done("apply", "--all", "--auto-approve")
    assert {read_retention(kafka, name) for name in ("app.a", "report.a")} == {"2000"}


def test_a_name_that_new_outputs_bring_can_be_that_of_another_folder(
    chain: Here, kafka: CountingProvider
) -> None:
    """The output is recorded by the same run: as in any plan, both folders are refused."""
    chain.write("teams/platform/name.kf.hcl", 'output "name" {\n  value = "alone.a"\n}\n')
    topic = "data.kafkaform_outputs.platform.outputs.name"
    block = f'resource "kafka_topic" "more" {{\n  name = {topic}\n}}\n'
    chain.write("teams/app/more.kf.hcl", block)
    said = chain.run("apply", "--all", "--auto-approve")
    assert said.code == 1
    assert "  ! teams/app: another folder has 1 object of it, too" in said.out
    assert "teams/alone (teams/alone/main.kf.hcl:1)" in " ".join(said.err.replace("│", " ").split())
    assert list_topics(kafka) == ["platform.a"]


def test_what_new_outputs_change_is_reviewed(chain: Here, kafka: CountingProvider) -> None:
    """One approval covers the folder with the new value and all that follow from it."""
    chain.done("apply", "--all", "--auto-approve")
    write_platform(chain, "2000")
    digest, _ = approve(chain)
    chain.done("apply", "--all", "--expect", digest)
    assert {read_retention(kafka, name) for name in ("app.a", "report.a")} == {"2000"}


def test_what_a_computed_output_changes_was_not_reviewed(
    chain: Here, kafka: CountingProvider
) -> None:
    """Only the apply shows the value. With an approval, the folders behind are refused alone; the
    next review has their plans."""
    chain.done("apply", "--all", "--auto-approve")
    write_computed(chain)
    planned = chain.done("plan", "--all")
    assert "teams/app is skipped: it can be planned when teams/platform is applied" in planned.out
    _, file = approve(chain)
    said = chain.run("apply", "--all", "--expect", str(file))
    assert said.code == 4
    assert "  ! teams/app: this plan was not approved" in said.out
    assert "teams/report was skipped: teams/app, whose outputs it reads, failed" in said.out
    assert read_retention(kafka, "app.a") == "1000"
    assert read_state(chain, "platform")["outputs"]["retention"]["value"] == "2000"
    _, file = approve(chain)
    chain.done("apply", "--all", "--expect", str(file))
    assert {read_retention(kafka, name) for name in ("app.a", "report.a")} == {"2000"}


def test_what_needs_a_failed_folder_is_skipped(chain: Here, kafka: CountingProvider) -> None:
    """With the reason, also further away; what does not need it is applied."""
    chain.done("apply", "--all", "--auto-approve")
    chain.write("teams/platform/main.kf.hcl", "resource {")
    write_topics(chain.path, "alone", "alone.a", "alone.b")
    chain.write("teams/report/more.kf.hcl", 'resource "kafka_topic" "b" {\n  name = "more"\n}\n')
    said = chain.run("apply", "--all", "--auto-approve")
    assert said.code == 1
    assert "teams/app was skipped: teams/platform, whose outputs it reads, failed" in said.out
    assert "teams/report was skipped: teams/app, whose outputs it reads, was skipped" in said.out
    assert "alone.b" in list_topics(kafka) and "more" not in list_topics(kafka)


def test_a_circle_is_an_error_of_its_folders(chain: Here, kafka: CountingProvider) -> None:
    """With the chain; the others are applied."""
    chain.write("teams/platform/back.kf.hcl", READ.replace("platform", "app"))
    said = chain.run("apply", "--all", "--auto-approve")
    assert said.code == 1 and list_topics(kafka) == ["alone.a"]
    assert (
        "teams/app (teams/app/outputs.kf.hcl:1:1) → "
        "teams/platform (teams/platform/back.kf.hcl:1:1) → teams/app"
    ) in said.text
    assert "teams/report was skipped: teams/app, whose outputs it reads, failed" in said.out


def test_new_outputs_never_give_an_object_to_two_folders(
    chain: Here, kafka: CountingProvider
) -> None:
    """Both folders would get the same name in one run: both are refused, and nothing is sent."""
    for name in ("app", "report"):
        chain.write(f"teams/{name}/outputs.kf.hcl", "")
        chain.write(
            f"teams/{name}/main.kf.hcl",
            READ + 'resource "kafka_topic" "a" {\n'
            "  for_each   = toset(data.kafkaform_outputs.platform.outputs.names)\n"
            "  name       = each.key\n  partitions = 1\n}\n",
        )
    chain.write("teams/platform/outputs.kf.hcl", 'output "names" {\n  value = []\n}\n')
    chain.done("apply", "--all", "--auto-approve")
    chain.write("teams/platform/outputs.kf.hcl", 'output "names" {\n  value = ["one"]\n}\n')
    said = chain.run("apply", "--all", "--auto-approve")
    assert said.code == 1 and "one" not in list_topics(kafka)
    for name in ("app", "report"):
        assert f"! teams/{name}: another folder has 1 object of it, too" in said.out
    assert "teams/app/main.kf.hcl:4" in said.text


# ── destroy ─────────────────────────────────────────────────────────────────────────────


def test_a_destroy_goes_the_other_way_round(chain: Here, kafka: CountingProvider) -> None:
    """What reads outputs goes before what provides them. The cluster is named once."""
    chain.done("apply", "--all", "--auto-approve")
    scope = read_state(chain, "app")["providers"]["kafka"]
    assert "--confirm CLUSTER" in chain.fails("destroy", "--all")
    wrong = chain.fails("destroy", "--all", "--confirm", "other")
    assert "--confirm names other" in wrong and len(list_topics(kafka)) == 4
    said = chain.done("destroy", "--all", "--confirm", scope)
    assert not list_topics(kafka)
    order = [said.out.rindex(f"── teams/{name}") for name in ("report", "app", "platform")]
    assert order == sorted(order)


def test_a_plan_to_destroy_what_changed_names_the_command_for_it(
    top: Here, kafka: CountingProvider
) -> None:
    """The command of its last line does exactly that."""
    top.done("apply", "--all", "--auto-approve")
    commit_all(top)
    with (top.path / "teams/web/main.kf.hcl").open("a") as text:
        text.write("# changed\n")
    planned = top.done("plan", "--destroy", "--changed-since", "HEAD")
    program, *words = planned.out.splitlines()[-1].removeprefix("Next: ").split()
    assert (program, words[:2]) == ("kafkaform", ["destroy", "--changed-since=HEAD"])
    top.done(*words)
    assert list_topics(kafka) == ["pay.a", "shop.a"]


def test_a_folder_that_others_read_stays_if_they_fail(chain: Here, kafka: CountingProvider) -> None:
    chain.done("apply", "--all", "--auto-approve")
    scope = read_state(chain, "app")["providers"]["kafka"]
    chain.write("teams/app/main.kf.hcl", "resource {")
    said = chain.run("destroy", "--all", "--confirm", scope)
    assert said.code == 1
    assert list_topics(kafka) == ["app.a", "platform.a"]
    assert "teams/platform was skipped: teams/app, which reads its outputs, failed" in said.out


# ── programs, interrupts, flags ─────────────────────────────────────────────────────────


def test_json_lines_name_their_folder(chain: Here) -> None:
    """Each plan is there once; the last line is the summary, also of what failed."""
    chain.write("teams/alone/main.kf.hcl", "resource {")
    said = chain.run("apply", "--all", "--auto-approve", "--json")
    assert said.code == 1
    lines = read_lines(said.out)
    planned = [line["folder"] for line in lines if line["type"] == "planned_change"]
    assert sorted(planned) == ["teams/app", "teams/platform", "teams/report"]
    applied = [line["folder"] for line in lines if line["type"] == "apply_complete"]
    assert applied == ["teams/platform", "teams/app", "teams/report"]
    assert {line.get("folder") for line in lines if line["type"] == "diagnostic"} >= {"teams/alone"}
    last = lines[-1]
    assert last["type"] == "repository_summary" and "folder" not in last
    repository = last["repository"]
    assert (repository["add"], repository["failed"], repository["skipped"]) == (3, 1, 0)
    by_path = {item["folder"]: item for item in repository["folders"]}
    assert by_path["teams/alone"]["exit_code"] == 1
    assert by_path["teams/app"]["run"] and by_path["teams/app"]["owner"] == "app"


def test_folders_that_were_not_begun_are_named(
    top: Here, kafka: CountingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C in one of them. The next run goes on."""

    def interrupt(space: Any, **flags: Any) -> Any:
        applied = apply_changes(space, **flags)
        if space.configuration.folder.name == "shop":
            error = Interrupted("stopped by a signal")
            error.applied = applied
            raise error
        return applied

    monkeypatch.setattr(applying, "apply_changes", interrupt)
    said = top.run("apply", "--all", "--auto-approve")
    assert said.code == 130
    assert "  ! teams/shop: stopped by a signal" in said.out
    assert "teams/web was skipped: interrupted before it was begun" in said.out
    assert list_topics(kafka) == ["pay.a", "shop.a"]
    monkeypatch.undo()
    simulate_kafka(monkeypatch, lambda: kafka)
    top.monkeypatch.chdir(top.path)
    again = top.done("apply", "--all", "--auto-approve")
    assert list_topics(kafka) == ["pay.a", "shop.a", "web.a"]
    assert "2 folders had nothing to send." in again.out


def test_an_interrupt_between_two_folders_is_no_success(
    top: Here, kafka: CountingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first folder is applied to its end. The exit code says that there is more to do, unless
    there is not."""
    write_topics(top.path, "web")

    def interrupt(space: Any, **flags: Any) -> Any:
        applied = apply_changes(space, **flags)
        flags["stop"].ask(signal.SIGTERM)
        return applied

    monkeypatch.setattr(applying, "apply_changes", interrupt)
    said = top.run("apply", "--all", "--auto-approve")
    assert (said.code, list_topics(kafka)) == (143, ["pay.a"])
    assert "teams/shop was skipped: interrupted before it was begun" in said.out
    assert "1 folder had nothing to send." in said.out and "failed" not in said.out
    assert "teams/shop: interrupted before it was begun" in said.err
    assert "Run the same command again" in said.err
    assert top.run("apply", "--all", "--auto-approve").code == 0
    assert list_topics(kafka) == ["pay.a", "shop.a"]


def test_what_a_folder_recovers_is_told_with_its_path(
    top: Here, kafka: CountingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Addresses are the same in many folders."""
    top.done("apply", "--all", "--auto-approve")
    write_topics(top.path, "shop", "shop.a", "shop.b")
    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "save", lambda *_: (_ for _ in ()).throw(StorageError("full")))
        assert top.run("apply", "--all", "--auto-approve").code == 9
    said = top.done("apply", "--all", "--auto-approve")
    assert "teams/shop: Took 1 outcome of an earlier run into the state." in said.err
    assert "3 folders had nothing to send." in said.out


def test_no_folder_has_changed(top: Here, kafka: CountingProvider) -> None:
    """Then there is nothing to ask about."""
    commit_all(top)
    said = top.done("apply", "--all", "--changed-since", "main")
    assert said.out == "\nNo folder has changed, so nothing was sent.\n"
    write_topics(top.path, "shop", "shop.a", "shop.b")
    top.done("apply", "--all", "--changed-since", "main", "--auto-approve")
    assert list_topics(kafka) == ["shop.a", "shop.b"]


def test_flags_that_are_about_one_folder(top: Here) -> None:
    assert "chooses objects of one folder" in top.fails("apply", "--all", "--target=kafka_topic.a")
    for words in (["saved.kfplan"], ["--reviewed", "saved.kfplan"]):
        saved = top.fails("apply", "--all", *words)
        assert " cannot be combined with --all: a saved plan is the plan of one folder" in saved
        assert "`plan --all --approval-out FILE`" in saved
    assert "each folder of a repository has a state" in top.fails(
        "destroy", "--folder=teams/*", "--state=x.json"
    )
    assert "apply takes no --untrusted" in top.fails("apply", "--all", "--untrusted")


def test_a_condition_blocks_its_folder_alone(top: Here, kafka: CountingProvider) -> None:
    """`--fail-on`, and what is blocked."""
    top.done("apply", "--all", "--auto-approve")
    write_topics(top.path, "shop", "shop.a", more='config = { "retention.ms" = "1000" }')
    write_topics(top.path, "web", "web.a", "web.b")
    said = top.run("apply", "--all", "--auto-approve", "--fail-on=data-loss")
    assert said.code == 8 and "web.b" in list_topics(kafka)
    assert "  ! teams/shop: --fail-on" in said.out


def test_relative_paths_are_seen_from_each_folder(top: Here, kafka: CountingProvider) -> None:
    """Providers read certificates from the current folder, which is that of the configuration."""
    seen: list[str] = []
    opened = CountingProvider.open

    def open_and_look(self: CountingProvider, *arguments: Any) -> Any:
        seen.append(Path.cwd().name)
        return opened(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CountingProvider, "open", open_and_look)
        top.write("kafkaform.hcl", FILE)
        top.done("apply", "--all", "--auto-approve")
    assert {"pay", "shop", "web"} <= set(seen)
    assert Path.cwd() == top.path
