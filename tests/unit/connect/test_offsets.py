"""Connectors that take offsets from another one: order, lost answers, applies that ended early."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.apply import recovery
from kafkaform.plan.codec import decode, encode

from ...kit.connect.folder import ConnectFolder, connector
from ...kit.http.faults import Fault
from ...kit.http.proxy import proxying
from ...kit.http.server import Request

LINES = [{"partition": {"filename": "/dev/null"}, "offset": {"position": 12345678901234567890}}]
STOP, PATCH = "PUT /connectors/old/stop", "PATCH /connectors/new/offsets"
RESUME, DELETE = "PUT /connectors/new/resume", "DELETE /connectors/old"
RENAMED = ["POST /connectors", STOP, PATCH, RESUME, DELETE]


@pytest.fixture
def renamed(folder: ConnectFolder) -> ConnectFolder:
    """`old` has run, and gets the name `new`."""
    folder.declare(connector("old"))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    folder.workers.offsets["old"] = LINES
    folder.declare(connector("new", offsets_from='"old"'))
    return folder


def is_complete(folder: ConnectFolder) -> bool:
    workers = folder.workers
    runs = [*workers.connectors] == ["new"] and folder.find("new").state == "RUNNING"
    return runs and workers.offsets["new"] == LINES


def test_a_new_name_takes_its_offsets_along(renamed: ConnectFolder) -> None:
    """The new connector never runs without them, the old one is deleted last, and the plan says
    all of it; the one after it finds nothing to do."""
    text = renamed.here.done("plan").text
    assert "the connector new goes on where old ends" in text
    assert "is stopped now and deleted at the end" in text and "under another name" not in text
    renamed.here.done("apply", "-auto-approve")
    assert renamed.list_writes() == RENAMED
    assert is_complete(renamed)
    assert "No changes" in renamed.here.done("plan").text


def test_a_saved_plan_takes_them_along(renamed: ConnectFolder) -> None:
    """It is applied as it was reviewed, although its own requests stop a connector that it
    deletes."""
    saved = str(renamed.here.path / "plan.kfplan")
    renamed.here.done("plan", f"-out={saved}")
    renamed.here.done("apply", saved)
    assert renamed.list_writes() == RENAMED and is_complete(renamed)


def test_a_plan_with_another_side_effect_is_refused(renamed: ConnectFolder) -> None:
    """The steps of an edited file are not those of its changes."""
    saved = renamed.here.path / "plan.kfplan"
    renamed.here.done("plan", f"-out={saved}")
    plan = decode(saved.read_bytes(), "")
    edits = 0
    for number, change in enumerate(plan.changes):
        for place, step in enumerate(change.steps):
            effects = [
                *(replace(effect, path=("config",)) for effect in step.alters),
                *(replace(effect, identity=step.identity) for effect in step.alters),
            ]
            for altered in ((), *((effect,) for effect in effects)) if step.alters else ():
                steps = list(change.steps)
                steps[place] = replace(step, alters=altered)
                changes = list(plan.changes)
                changes[number] = replace(change, steps=tuple(steps))
                saved.write_bytes(encode(replace(plan, changes=tuple(changes))))
                said = renamed.here.run("apply", str(saved))
                assert said.code != 0 and "the plan was altered" in said.text
                edits += 1
    assert edits == 3 and not renamed.list_writes()


def test_a_moved_block_takes_them_along_as_well(folder: ConnectFolder) -> None:
    """Its address changes with the name of the connector."""
    folder.declare(connector("old"))
    folder.here.done("apply", "-auto-approve")
    folder.workers.offsets["old"] = LINES
    kind = "kafka_connect_connector"
    moved = f"moved {{\n  from = {kind}.old\n  to = {kind}.new\n}}\n"
    folder.declare(connector("new", offsets_from='"old"'), moved)
    folder.here.done("apply", "-auto-approve")
    assert is_complete(folder)
    assert "No changes" in folder.here.done("plan").text


@pytest.mark.parametrize("request_line", RENAMED[1:])
def test_what_ends_early_is_finished_by_the_next_apply(
    renamed: ConnectFolder, request_line: str
) -> None:
    """Whichever request is refused: nothing is deleted before the offsets are there, and the new
    connector does not run without them."""
    with proxying(renamed.served.port) as proxy:
        text = (renamed.here.path / "main.kf.hcl").read_text()
        renamed.here.write("main.kf.hcl", text.replace(renamed.served.url, proxy.url))
        body = b'{"error_code": 400, "message": "refused by a test"}'
        proxy.arm(Fault(request_line, "refuse", status=400, body=body))
        renamed.here.fails("apply", "-auto-approve", code=5)
        assert proxy.all_struck
    assert "old" in renamed.workers.connectors
    assert renamed.find("new").state == "STOPPED" or request_line == DELETE
    renamed.declare(connector("new", offsets_from='"old"'))
    renamed.here.done("apply", "-auto-approve")
    assert is_complete(renamed)
    assert "No changes" in renamed.here.done("plan").text


@pytest.mark.parametrize("kind", ["reset before", "reset after", "lose"])
@pytest.mark.parametrize("request_line", RENAMED)
def test_a_lost_answer_is_settled(
    renamed: ConnectFolder, request_line: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By reading: this apply or the next one completes it, and no connector is made twice."""
    monkeypatch.setattr(recovery, "MARGIN_SECONDS", 0.5)
    with proxying(renamed.served.port) as proxy:
        text = (renamed.here.path / "main.kf.hcl").read_text()
        renamed.here.write("main.kf.hcl", text.replace(renamed.served.url, proxy.url))
        proxy.arm(Fault(request_line, kind))
        renamed.here.run("apply", "-auto-approve")
        assert proxy.all_struck
    renamed.declare(connector("new", offsets_from='"old"'))
    renamed.here.done("apply", "-auto-approve")
    assert is_complete(renamed)
    assert renamed.list_writes().count("POST /connectors") == 1


def test_a_source_that_somebody_deletes_is_not_taken_for_missing(folder: ConnectFolder) -> None:
    """A plan that would take its offsets does not make a connector that starts over: before the
    apply, the plan is stale; after it began, the connector stays stopped. The next plan says that
    it starts over, and does so."""
    new = connector("new", offsets_from='"old"')
    folder.declare(connector("old", state='"stopped"'))
    folder.here.done("apply", "-auto-approve")
    old = folder.workers.connectors["old"]
    folder.here.done("state", "rm", "kafka_connect_connector.old")
    saved = str(folder.here.path / "plan.kfplan")
    folder.declare(new)
    folder.here.done("plan", f"-out={saved}")
    folder.list_writes()
    del folder.workers.connectors["old"]
    said = folder.here.fails("apply", saved, code=8)
    assert "the connector old, whose offsets new is to get, is gone" in said
    assert not folder.list_writes()
    folder.workers.connectors["old"] = old
    answer = folder.served.answers

    def delete_meanwhile(request: Request) -> tuple[int, object]:
        reply = answer(request)
        if request.method == "POST" and request.path == "/connectors":
            del folder.workers.connectors["old"]
        return reply

    folder.served.answers = delete_meanwhile
    said = folder.here.fails("apply", "-auto-approve", code=5)
    folder.served.answers = answer
    assert "the connector old, whose offsets new is to get, does not exist any more" in said
    assert folder.find("new").state == "STOPPED"
    folder.declare(new)
    text = folder.here.done("apply", "-auto-approve").text
    assert "there is no connector old to take offsets from: it goes on from its own" in text
    assert folder.find("new").state == "RUNNING"
    assert "No changes" in folder.here.done("plan").text


def test_a_new_environment_has_no_source(folder: ConnectFolder) -> None:
    """The connector is made as any other one, without a stop."""
    folder.declare(connector("new", offsets_from='"old"'))
    text = folder.here.done("apply", "-auto-approve").text
    assert 'offsets_missing = "old"' in text and "there is no connector old" in text
    assert folder.list_writes() == ["POST /connectors"]
    assert folder.find("new").state == "RUNNING"
    assert "No changes" in folder.here.done("plan").text


def test_offsets_that_are_there_stay(folder: ConnectFolder) -> None:
    """A connector that was stopped by hand goes on from its own when it is resumed."""
    own = [{"partition": {"filename": "/dev/null"}, "offset": {"position": 99}}]
    other = {"partition": {"filename": "b"}, "offset": {"position": 1}}
    folder.declare(connector("old", state='"stopped"'), connector("new"))
    folder.here.done("apply", "-auto-approve")
    folder.workers.offsets.update(old=[*LINES, other], new=own)
    folder.find("new").state = "STOPPED"
    folder.declare(connector("old", state='"stopped"'), connector("new", offsets_from='"old"'))
    assert "goes on where old ends: old stays stopped" in folder.here.done("plan").text
    folder.here.done("apply", "-auto-approve")
    assert folder.workers.offsets["new"] == [*own, other]
    assert folder.find("new").state == "RUNNING" and "old" in folder.workers.connectors


def test_a_paused_connector_gets_them_before_it_is_paused(renamed: ConnectFolder) -> None:
    """It is created stopped all the same."""
    renamed.declare(connector("new", offsets_from='"old"', state='"paused"'))
    renamed.here.done("apply", "-auto-approve")
    assert renamed.list_writes() == [*RENAMED[:3], "PUT /connectors/new/pause", DELETE]
    assert renamed.find("new").state == "PAUSED"
    assert "No changes" in renamed.here.done("plan").text


def test_the_plan_says_what_cannot_be(renamed: ConnectFolder) -> None:
    """A connector that goes on running, one that does not exist, workers that are too old, and what
    the block alone shows."""
    new = connector("new", offsets_from='"old"')
    renamed.declare(connector("old"), new)
    assert "whose offsets new is to get, goes on running" in renamed.here.fails("plan", code=8)
    renamed.declare(connector("old"), connector("new", offsets_from='"odl"'))
    text = renamed.here.done("plan").text
    assert "there is no connector odl to take offsets from: it has no offsets, so it reads" in text
    renamed.workers.version = "3.6.2"
    renamed.declare(new)
    text = renamed.here.fails("plan", code=8)
    assert "workers of Kafka 3.6 cannot create a connector that gets its offsets before" in text
    for block in (connector("new", offsets_from='"new"'), connector("n", offsets_from='"a/b"')):
        renamed.declare(block)
        assert "offsets_from" in renamed.here.fails("validate")
    renamed.declare(connector("new", offsets_from='"old"', state='"stopped"'))
    assert "would get offsets and stay stopped" in renamed.here.fails("validate")
