"""What docs/upgrades.md promises of files that earlier versions wrote: real ones, never edited."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.apply.freshness import refuse_if_altered
from kafkaform.audit.checkpoint import read_index
from kafkaform.core.errors import PlanRefused, exit_code
from kafkaform.core.landing import FORMAT as LANDING_FORMAT
from kafkaform.plan.codec import decode
from kafkaform.plan.model import FORMAT as PLAN_FORMAT
from kafkaform.plan.model import RULE
from kafkaform.state.model import FORMAT as STATE_FORMAT
from kafkaform.state.model import SEALED_FORMAT
from kafkaform.workflow.stores import open_store
from kafkaform_kafka.provider import PROVIDER

from ...kit.commands.fixtures import here
from ...kit.commands.here import Here
from ...kit.sealing import check_as_documented

__all__ = ["here"]

ROOT = Path(__file__).resolve().parents[3]
WRITTEN = Path(__file__).parent / "written"
VERSIONS = sorted(path.name for path in WRITTEN.iterdir() if path.is_dir())
SEALED = "kafkaform.audit"
STATE, LOG, PLAN = "kafkaform.state.json", "kafkaform.audit.jsonl", "plan.kfplan"
CONFIGURATION = """\
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:1"]
}
"""


@pytest.fixture(params=VERSIONS)
def older(request: pytest.FixtureRequest, here: Here) -> Here:
    """A folder as that version left it."""
    shutil.copytree(WRITTEN / request.param, here.path, dirs_exist_ok=True)
    here.write("main.kf.hcl", CONFIGURATION)
    return here


def test_a_state_of_every_version_is_read(older: Here) -> None:
    """Its objects, their values, outputs and anchor are as they were written."""
    written = json.loads((older.path / STATE).read_bytes())
    assert written["format"] == (SEALED_FORMAT if (older.path / SEALED).exists() else STATE_FORMAT)
    listed = older.done("state", "list").out.split()
    assert listed == ["kafka_topic.customers", "kafka_topic.orders"]
    assert "604800000" in older.done("state", "show", "kafka_topic.orders").out
    assert older.done("output", "-raw", "orders").out == written["outputs"]["orders"]["value"]


def test_a_log_of_every_version_is_read(older: Here) -> None:
    """Each record is sound, the state's anchor is in it, and no record is lost in a copy."""
    lines = read_log(older.path)
    head = json.loads(lines[-1])
    told = older.done("audit", "verify")
    segments = len(list((older.path / SEALED / "segments").glob("*")))
    sealed = len(lines) - len((older.path / LOG).read_bytes().splitlines())
    among = f" ({sealed} in {segments} segments)" if segments else ""
    assert f"{len(lines)} records{among} and the state's anchor" in told.out
    assert told.err == "", "something is no part of the log, or a checkpoint is missing"
    assert f"{head['seq']}:{head['hash']}" in told.out
    rows = [json.loads(line) for line in older.done("audit", "export").out.splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, len(lines) + 1))
    assert older.done("audit", "show").out.strip()


def read_log(folder: Path) -> list[bytes]:
    """The lines of a log, those in segments first."""
    segments = sorted((folder / SEALED / "segments").glob("*"))
    sealed = b"".join(gzip.decompress(path.read_bytes()) for path in segments)
    return (sealed + (folder / LOG).read_bytes()).splitlines()


def test_a_sealed_log_is_decided_by_from_its_checkpoint(here: Here) -> None:
    """That of the first version with checkpoints, too: nothing before it is read."""
    folder = WRITTEN / "0b91dcc5"
    shutil.copytree(folder, here.path, dirs_exist_ok=True)
    store = open_store()
    state = store.backend.load().state
    assert state is not None
    used = read_index(store.sink, state.audit_head).growth.used
    assert used is not None and f"{len(read_log(folder)) - 2:020d}" in used
    assert check_as_documented(here.path / LOG) == ""


def test_reading_changes_no_file(older: Here) -> None:
    """A version that only looks leaves everything to the one that wrote it."""
    before = older.files()
    for words in (("state", "list"), ("audit", "verify"), ("show",)):
        older.done(*words)
    older.run("show", PLAN)
    changed = {name for name, content in older.files().items() if before.get(name) != content}
    assert not changed - {".kafkaform/lock"}


def test_an_edit_continues_the_state_and_the_log_of_every_version(older: Here) -> None:
    """`state mv` writes both in today's form, behind what stands there, and the log stays sound."""
    log = (older.path / LOG).read_bytes()
    serial = json.loads((older.path / STATE).read_bytes())["serial"]
    older.done("state", "mv", "kafka_topic.orders", "kafka_topic.renamed")
    assert (older.path / LOG).read_bytes().startswith(log)
    assert json.loads((older.path / STATE).read_bytes())["serial"] == serial + 1
    assert "kafka_topic.renamed" in older.done("state", "list").out
    older.done("audit", "verify")


def test_a_plan_of_this_format_is_shown_and_an_older_one_refused(older: Here) -> None:
    """A plan is short-lived: the refusal names both formats, and the advice is a new plan."""
    written = json.loads((older.path / PLAN).read_bytes())
    if written["format"] < PLAN_FORMAT:
        told = " ".join(older.fails("show", PLAN, code=4).split())
        assert f"has plan format {written['format']}, this version reads {PLAN_FORMAT}" in told
        assert "Make a new plan" in told
        return
    shown = older.done("show", PLAN).out
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in shown
    assert written["plan"]["approval"] in shown


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_under_other_rules_is_refused(version: str) -> None:
    """With the advice to plan again. One under today's rules is accepted: its approval and its
    steps still follow from its changes."""
    content = (WRITTEN / version / PLAN).read_bytes()
    if json.loads(content)["format"] < PLAN_FORMAT:
        with pytest.raises(PlanRefused, match="plan format"):
            decode(content, PLAN)
        return
    plan, providers = decode(content, PLAN), {"kafka": PROVIDER}
    refuse_if_altered(plan, providers)
    with pytest.raises(PlanRefused, match="rules of another version") as refused:
        refuse_if_altered(replace(plan, rule=RULE - 1), providers)
    assert exit_code(refused.value) == 4
    assert "Plan again" in refused.value.diagnostics[0].advice


def test_files_of_a_later_format_are_refused(here: Here) -> None:
    """With the exit codes of docs/upgrades.md; a state names the version to use, and nothing is
    changed."""
    for name in (STATE, PLAN):
        text = (WRITTEN / VERSIONS[0] / name).read_text()
        later = re.sub(r'"format":\d+', '"format":999', text, count=1)
        here.write(
            name, later.replace('"kafkaform_version":"0.1.0"', '"kafkaform_version":"9.8.7"')
        )
    before = here.files()
    told = " ".join(here.fails("state", "list", code=9).split())
    assert "state format 999, written by kafkaform 9.8.7" in told
    assert "plan format 999" in here.fails("show", PLAN, code=4)
    assert here.files() == before


def test_there_are_files_of_every_format_and_rule() -> None:
    """Every number that a format or a rule has had, up to today's; a new number needs a folder and
    a row in docs/upgrades.md."""
    states = {json.loads((WRITTEN / v / STATE).read_bytes())["format"] for v in VERSIONS}
    plans = [json.loads((WRITTEN / v / PLAN).read_bytes()) for v in VERSIONS]
    assert states == {*range(1, SEALED_FORMAT + 1)}
    assert {plan["format"] for plan in plans} == {*range(1, PLAN_FORMAT + 1)}
    assert {plan["plan"].get("rule", 1) for plan in plans} == {*range(1, RULE + 1)}
    page = (ROOT / "docs/upgrades.md").read_text("utf-8")
    numbers = {"state": STATE_FORMAT, "saved plan": PLAN_FORMAT, "landing file": LANDING_FORMAT}
    for name, number in numbers.items():
        assert re.search(rf"^\| {name} \| {number}[ ;]", page, re.MULTILINE), name
    assert f"rule {RULE}" in page
    told = (WRITTEN / "README.md").read_text("utf-8")
    assert all(f"`{version}`" in told for version in VERSIONS)
