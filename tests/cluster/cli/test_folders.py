"""Many folders of a repository on a real cluster: outputs from folder to folder, one approval for
all, what fails alone, and the way back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...kit.commands.folder import LOG, STATE, Folder, Said

READ = 'data "kafkaform_outputs" "{0}" {{\n  folder = "../{0}"\n}}\n'
FILE = """\
repository {{
  name = "acme"
}}

cluster "prod" {{
  provider = "kafka"
{0}}}

folders "teams/*" {{
  owner = folder.name
  uses  = {{ kafka = cluster.prod }}
}}
"""


@pytest.fixture
def top(folder: Folder) -> Iterator[Folder]:
    """The top of a repository: `app` reads outputs of `platform`, `report` those of `app`, and
    `alone` none."""
    provider = (folder.path / "provider.kf.hcl").read_text()
    (folder.path / "provider.kf.hcl").unlink()
    folder.write(
        "kafkaform.hcl", FILE.format(provider.strip().partition("{\n")[2].rstrip("}\n") + "\n")
    )
    for name in ("platform", "app", "report", "alone"):
        (folder.path / "teams" / name).mkdir(parents=True)
    put_out(folder, "1000000")
    write(folder, "alone", folder.topic("alone"))
    for name, source in (("app", "platform"), ("report", "app")):
        value = f"data.kafkaform_outputs.{source}.outputs.retention"
        topic = folder.topic(name, more=f'config = {{ "retention.ms" = {value} }}')
        output = f'output "retention" {{\n  value = {value}\n}}\n'
        write(folder, name, READ.format(source) + topic + output)
    yield folder


def write(top: Folder, name: str, text: str) -> Path:
    return top.write(f"teams/{name}/main.kf.hcl", text)


def put_out(top: Folder, retention: str) -> None:
    """Let `platform` declare a topic, and put this out."""
    output = f'output "retention" {{\n  value = "{retention}"\n}}\n'
    write(top, "platform", top.topic("platform") + output)


def read_runs(top: Folder, name: str) -> list[str]:
    """The kinds of records of the folder's log, without intents and outcomes."""
    log = top.path / "teams" / name / LOG
    kinds = [json.loads(line)["kind"] for line in log.read_bytes().splitlines()]
    return [kind for kind in kinds if kind.startswith("run")]


def approve(top: Folder) -> Path:
    file = top.path / "approval"
    file.unlink(missing_ok=True)
    top.done("plan", "--all", "--approval-out", str(file))
    return file


def test_a_repository_is_applied_and_taken_down(top: Folder) -> None:
    """From nothing, in the order of the outputs; new values are used in the same run; a second run
    sends nothing; a destroy goes the other way round."""
    said = top.done("apply", "--all", "--auto-approve")
    assert top.topics() == {"platform": 1, "app": 1, "report": 1, "alone": 1}
    assert {top.config(name)["retention.ms"] for name in ("app", "report")} == {"1000000"}
    order = [said.out.rindex(f"── teams/{name}") for name in ("platform", "app", "report")]
    assert order == sorted(order)
    with top.untouched():
        assert "4 folders had nothing to send." in top.done("apply", "--all", "--auto-approve").out
    assert read_runs(top, "report") == ["run_begin", "run_end"]
    put_out(top, "2000000")
    top.done("apply", "--all", "--auto-approve")
    top.until(lambda: top.config("report")["retention.ms"] == "2000000")
    assert read_runs(top, "alone") == ["run_begin", "run_end"]
    cluster = top.broker.cluster_id
    top.done("destroy", "--folder=teams/r*", "--folder=teams/app", "--confirm", cluster)
    top.until(lambda: top.topics() == {"platform": 1, "alone": 1})
    top.done("destroy", "--all", "--confirm", cluster)
    top.until(lambda: not top.topics())


def test_an_approval_file_refuses_what_differs_alone(top: Folder) -> None:
    """Drift in one folder refuses that one, with 4; the file can be used again."""
    top.done("apply", "--all", "--auto-approve")
    for name in ("platform", "alone"):
        path = top.path / "teams" / name / "more.kf.hcl"
        path.write_text(top.topic(f"{name}-2"))
    file = approve(top)
    top.create("alone-2", 3)
    said = top.run("apply", "--all", "--expect", str(file))
    assert said.code == 4, said.text
    assert set(top.topics()) == {"platform", "app", "report", "alone", "alone-2", "platform-2"}
    assert top.topics()["alone-2"] == 3 and "! teams/alone:" in said.out
    with top.untouched():
        again = top.run("apply", "--all", "--expect", str(file))
    assert again.code == 4 and "Already applied by run" in again.text


def test_a_folder_that_fails_keeps_others_from_nothing(top: Folder) -> None:
    """A fault, a damaged state, and a folder that reads what is not there."""
    write(
        top,
        "report",
        READ.format("app") + 'output "x" {\n  value = data.kafkaform_outputs.app.outputs.y\n}\n',
    )
    (top.path / "teams/alone" / STATE).write_text("{")
    said: Said = top.run("apply", "--all", "--auto-approve")
    assert said.code == 9, said.text
    assert set(top.topics()) == {"platform", "app"}
    assert "../app has not recorded an output" in said.text
    assert "teams/report/main.kf.hcl:5:" in said.text


def test_plans_that_nobody_can_read_are_not_applied(top: Folder) -> None:
    """Nothing is sent if the plans cannot be shown."""
    with Path("/dev/full").open("w") as full, top.untouched():
        process = top.process(
            "apply", "--all", "--auto-approve", stdout=full, stderr=subprocess.PIPE
        )
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert "nothing was sent" in errors and "Traceback" not in errors
    assert not (top.path / "teams/alone" / LOG).exists()
