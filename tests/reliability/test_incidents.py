"""What happened to people with tools of this kind, each as a test: what they did, what they lost,
and why that is impossible here. The sources are in docs/reliability.md."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import PlanRefused, StorageError
from kafkaform.core.finding import Block
from kafkaform.core.resource import Lifecycle
from kafkaform.core.secret import Secret
from kafkaform.plan.model import Mode, Options
from kafkaform.state import codec
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import State
from kafkaform_kafka.memory import Killed, SimulatedCluster, killed_after, late_effect, lost_reply

from ..kit.commands.fixtures import admin, folder, here  # noqa: F401  # pytest finds them here
from ..kit.commands.folder import LOG, STATE, Folder
from ..kit.commands.here import Here
from ..kit.commands.stocks import PROVIDER, desk
from ..kit.simulated.engine import House, apply, desired, house, identity, plan, removed, topic
from ..kit.simulated.managed_topics import built, complete, ends, writes
from ..kit.states import state_of
from ..kit.states import topic as recorded
from ..unit.state.test_local import INFO


def topics(where: House) -> dict[str, str]:
    """name -> id of what is live."""
    return {name: topic.id for name, topic in where.cluster.topics.items()}


@contextmanager
def beside(mine: Folder, name: str) -> Any:
    """Another configuration with a state of its own, for the same cluster."""
    path = mine.path / name
    path.mkdir(exist_ok=True)
    other = Folder(path, mine.prefix, mine.broker, mine.admin, mine.capsys, mine.monkeypatch)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        other.connect()
        yield other


# ── deletes ─────────────────────────────────────────────────────────────────────────────


def test_the_first_apply_deletes_nothing(folder: Folder) -> None:  # noqa: F811
    """Somebody's first apply on a cluster in use deleted every topic that the files did not name.
    Here only what this state records can be deleted: the others are counted and left alone."""
    for name in ("payments", "orders"):
        folder.create(name)
    folder.declare("new")
    assert "0 to destroy" in folder.done("plan").out
    folder.done("apply", "-auto-approve")
    assert set(folder.topics()) == {"payments", "orders", "new"}
    assert {r["body"]["action"] for r in folder.records("intent")} == {"create"}
    folder.done("destroy", "--confirm", folder.broker.cluster_id)
    assert set(folder.topics()) == {"payments", "orders"}


def test_a_second_configuration_does_not_delete_the_first_ones(folder: Folder) -> None:  # noqa: F811
    """Each team's run deleted the topics of the other team's file. Here what another state owns
    is nobody's to delete: both go on, and even a `removed` block for it finds nothing."""
    folder.declare("ours")
    folder.done("apply", "-auto-approve")
    with beside(folder, "other") as other:
        other.declare("theirs")
        other.done("apply", "-auto-approve")
        block = "removed {\n  from = kafka_topic.ours\n  lifecycle {\n    destroy = true\n  }\n}\n"
        other.write("removed.kf.hcl", block)
        other.done("apply", "-auto-approve")
        assert set(folder.topics()) == {"ours", "theirs"}
        other.done("destroy", "--confirm", folder.broker.cluster_id)
    assert "No changes" in folder.done("plan").out
    assert set(folder.topics()) == {"ours"}


def test_internal_topics_are_never_deleted() -> None:
    """Each run deleted `__consumer_offsets`, and all groups lost their positions; the broker let
    it happen. Here a topic of Kafka's own is no part of any plan to delete, whatever the state
    says: not undeclared, not by a `removed` block, not by `destroy`."""
    name = "__consumer_offsets"
    where = built(desired(topic("a")))
    with where.cluster.others() as others:
        others.create(name, 50)
    assert complete(apply(where, desired(topic("a")))) and name in topics(where)
    state = where.state
    row = state.objects[identity("a")]
    known: dict[str, Any] = {"incarnation": topics(where)[name], "owners": (f"kafka_topic.{name}",)}
    forged = replace(row, identity=identity(name), protected="no", **known)
    where.backend.data = codec.encode(
        replace(state, objects={**state.objects, forged.identity: forged})
    )
    gone = desired(topic("a"), topic("b"), removed=(removed(f"kafka_topic.{name}", destroy=True),))
    unasked = desired(topic("a"), topic("b"), topic("c"))
    for said, options in (
        (gone, Options()),
        (unasked, Options()),
        (desired(topic("a")), Options(Mode.DESTROY)),
    ):
        (change,) = (c for c in plan(where, said, options).changes if c.identity.key == name)
        assert change.blocked is not None and "internal topic" in change.blocked.text
        assert change.blocked.asked is (said is not unasked) and not change.blocked.block.stops
        # The rest of the plan is not held up.
        assert complete(apply(where, said, options))
    assert {name} == set(topics(where)) and name in {one.key for one in where.state.objects}


def test_an_old_state_deletes_nothing_of_today() -> None:
    """An operator came back with its store of last month and deleted every topic made since; and
    topics that had been made anew under an old name. Here a state that was put back knows its own
    objects by their ids, and all others are not in it."""
    where = built(desired(topic("a"), topic("b")))
    old = where.backend.data, list(where.sink.whole), list(where.sink.records)
    assert complete(apply(where, desired(topic("a"), topic("b"), topic("c"))))
    with where.cluster.others() as others:
        others.recreate("b")
    live = topics(where)
    where.backend.data, where.sink.whole, where.sink.records = old
    gone = tuple(removed(f"kafka_topic.{name}", destroy=True) for name in ("b", "c"))
    done = apply(where, desired(topic("a"), removed=gone))
    assert complete(done) and topics(where) == live
    assert done.plan.count(Action.DELETE) == 0 and done.plan.count(Action.FORGET) == 1
    apply(where, desired(), Options(Mode.DESTROY))
    assert topics(where) == {name: live[name] for name in ("b", "c")}


def test_a_state_of_another_cluster_is_refused() -> None:
    """The same names on a new cluster, an old state, and everything was taken for outdated. Here
    a state is bound to the id of its cluster: plan and apply refuse another one."""
    first, second = built(desired(topic("a"))), house()
    with second.cluster.others() as others:
        others.create("a")
    second.cluster.id = "another-cluster-000000"
    second.backend, second.sink = first.backend, first.sink
    for command in (plan, apply):
        with pytest.raises(PlanRefused, match="another-cluster-000000"):
            command(second, desired(removed=(removed("kafka_topic.a", destroy=True),)))
    assert set(topics(second)) == {"a"} and not writes(second)


def test_protection_outlives_its_block(folder: Folder) -> None:  # noqa: F811
    """`prevent_destroy` stood in the block; the block was deleted, and with it the protection and
    then the topic. Here protection is in the state: neither a missing block, nor a `removed` block
    that destroys, nor `destroy` lifts it."""
    folder.declare("a", more="lifecycle {\n    prevent_destroy = true\n  }")
    folder.done("apply", "-auto-approve")
    folder.declare("b")
    said = folder.done("apply", "-auto-approve")
    assert "protected by prevent_destroy" in said.text
    block = "removed {\n  from = kafka_topic.a\n  lifecycle {\n    destroy = true\n  }\n}\n"
    folder.write("removed.kf.hcl", block)
    assert "protected by prevent_destroy" in folder.run("apply", "-auto-approve").text
    folder.run("destroy", "--confirm", folder.broker.cluster_id)
    assert "a" in folder.topics()


def test_no_edit_replaces_a_topic(folder: Folder) -> None:  # noqa: F811
    """An edited partition count, or a name, became "delete and create", and the data was gone.
    Here no plan replaces: fewer partitions and another name are refused, everything else changes
    the topic that is there."""
    folder.declare("a", partitions=3, more='config = { "retention.ms" = "1000000" }')
    folder.done("apply", "-auto-approve")
    kept = folder.records("outcome")[-1]["body"]["incarnation"]
    folder.declare("a", partitions=1)
    assert "cannot" in folder.fails(8, "apply", "-auto-approve")
    renamed = folder.topic("a", 3).replace(f"{folder.prefix}a", f"{folder.prefix}b")
    folder.write("topics.kf.hcl", renamed)
    assert "kafkaform never renames or replaces an object" in folder.run("plan").text
    folder.declare("a", partitions=4, more='config = { "cleanup.policy" = "compact" }')
    folder.done("apply", "-auto-approve")
    (row,) = codec.decode((folder.path / STATE).read_bytes(), STATE).objects.values()
    assert row.incarnation == kept and folder.topics() == {"a": 4}


# ── answers that do not come ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mishap", [lost_reply(), late_effect(2.0)], ids=["lost", "late"])
def test_a_timeout_is_not_followed_by_already_exists(mishap: Any) -> None:
    """A create timed out and had happened; the next apply failed with "already exists" until
    somebody imported the topic. Here an answer that is lost is looked up: the topic is recorded
    as made by us, and is created once."""
    where = house()
    where.cluster.faults.schedule(mishap, "CreateTopics")
    said = desired(topic("a"))
    assert complete(apply(where, said))
    row = where.row("a")
    assert row is not None and row.incarnation == topics(where)["a"]
    assert plan(where, said).changes == ()
    assert len(where.records("intent")) == 1 and where.cluster.requests["CreateTopics"] == 1


def test_a_topic_that_is_not_visible_yet_is_not_gone() -> None:
    """A read right after the create did not show the topic; it was dropped from the state, and
    the next apply failed. Here a recorded object that was just written is looked for again, and
    no row goes because of a reading."""
    where = house(brokers=3)
    said = desired(topic("a"), topic("b", config={"retention.ms": "1000"}))
    where.cluster.lag(seconds=3.0)
    assert complete(apply(where, said))
    assert {"a", "b"} == {i.key for i in where.state.objects}
    assert plan(where, said).changes == ()
    assert complete(apply(where, said)) and where.cluster.requests["CreateTopics"] == 1


def test_made_and_then_killed_is_recorded_by_the_next_run() -> None:
    """A run was killed after the create and before its state was written: the object existed and
    nobody managed it. Here the intent is durable before the request leaves, so that the next run
    finds out what became of it, and records it as ours."""
    where = built(desired(topic("z")))
    said = desired(topic("z"), topic("a"))
    where.cluster.faults.schedule(killed_after(), "CreateTopics")
    sent = writes(where)["CreateTopics"]
    with pytest.raises(Killed):
        apply(where, said)
    assert where.row("a") is None and "a" in topics(where)
    assert complete(apply(where, said)) and ends(where)[-1] == ("recover", "applied")
    row = where.row("a")
    assert row is not None and row.incarnation == topics(where)["a"]
    assert writes(where)["CreateTopics"] == sent + 1


def test_a_topic_that_an_application_made_first_is_not_replaced() -> None:
    """An application's first message made the topic with the cluster's defaults a moment before
    the tool did; the tool deleted it and made its own, and the messages were gone. Here the step
    fails, the topic is somebody's, and adopting it is a change that is shown."""
    where, said = house(), desired(topic("a", 3, {"retention.ms": "1000"}))

    def application() -> None:
        with where.cluster.others() as others:
            others.create("a", 1)

    where.sink.after_append = lambda records: (
        application() if records[0].kind == "intent" and "a" not in topics(where) else None
    )
    done = apply(where, said)
    assert not complete(done) and where.row("a") is None
    made = topics(where)["a"]
    (change,) = plan(where, said).changes
    assert change.blocked is not None and change.blocked.block is Block.UNMANAGED
    where.clock.advance(3600)
    adopting = topic("a", 3, {"retention.ms": "1000"}, lifecycle=Lifecycle(adopt=True))
    assert complete(apply(where, desired(adopting)))
    assert topics(where) == {"a": made} and where.cluster.topics["a"].partitions == 3


# ── ACLs ────────────────────────────────────────────────────────────────────────────────


ACLS = """
resource "kafka_acl" "app" {{
  count               = {count}
  acl_principal       = "User:${{element([{names}], count.index)}}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}}
"""


def test_one_acl_more_at_the_front_is_one_acl_more(tmp_path: Path) -> None:
    """ACLs were numbered by `count`; one more at the front of the list shifted all the others, and
    every one was deleted and made again, with a gap in between. Here an ACL is its seven fields:
    a shifted list changes who owns it, and sends nothing."""
    mine = desk(tmp_path, SimulatedCluster(brokers=1))
    for names in (["b", "c", "d"], ["a", "b", "c", "d"]):
        quoted = ", ".join(f'"{name}"' for name in names)
        mine.write("main.kf.hcl", PROVIDER + ACLS.format(count=len(names), names=quoted))
        done = mine.apply()
    assert done.count(Action.CREATE) == 1 and done.count(Action.DELETE) == 0
    assert {step.payload["acl_principal"] for c in done.effective for step in c.steps} == {"User:a"}
    assert mine.plan().changes == ()


# ── state and lock ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("left", [0, 1, 40, -1], ids="{}".format)
def test_half_a_state_is_not_an_empty_one(here: Here, left: int) -> None:  # noqa: F811
    """Ctrl-C or SIGTERM left a state of zero bytes, or half of one; the next run took it for an
    empty cluster and made everything again. Here a save replaces the state whole, and a file that
    is not whole is refused, with the way back."""
    whole = codec.encode(state_of(recorded("a", "kafka_topic.a")))
    here.write(STATE, whole[:left])
    block = 'resource "kafka_topic" "a" {\n  name = "a"\n  partitions = 1\n}\n'
    here.write("main.kf.hcl", PROVIDER + block)
    for command in (["plan"], ["apply", "--auto-approve"], ["state", "list"]):
        assert STATE in here.fails(*command, code=9)
    assert (here.path / STATE).read_bytes() == whole[:left] and not (here.path / LOG).exists()


HOLD = """
import sys, time
from pathlib import Path
from kafkaform.core.clock import SystemClock
from kafkaform.state.backends.local import LocalBackend
from tests.unit.state.test_local import INFO

with LocalBackend(Path(sys.argv[1])).lock(INFO, 0, SystemClock()):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_cancelled_pipeline_leaves_no_lock(tmp_path: Path) -> None:
    """A pipeline was cancelled, its lock stayed, and every later run failed until somebody broke
    it by hand, sometimes while a run was alive. Here the system's kernel holds the lock of a local
    state, and lets it go with the process; a lock in a store ends by itself."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / STATE)]
    here_is = {"PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=here_is) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        backend = LocalBackend(tmp_path / STATE)
        assert backend.holder() is not None
        process.kill()
        process.wait(60)
    with backend.lock(INFO, 0, SystemClock()) as lease:
        lease.ensure(1)


def test_a_state_that_contradicts_itself_is_never_saved(tmp_path: Path) -> None:
    """Snapshots were written whose parts did not fit together, and no later command could read
    them. Here a state is checked before it is written, as it is when it is read."""
    backend = LocalBackend(tmp_path / STATE)
    good = state_of(recorded("a", "kafka_topic.a"))
    version = backend.save(good, None)
    (row,) = good.objects.values()
    other = recorded("b", "kafka_topic.b").identity
    for bad in (
        replace(good, objects={other: row}),
        replace(good, objects={row.identity: replace(row, owners=())}),
        replace(good, serial=-1),
    ):
        assert isinstance(bad, State)
        with pytest.raises(StorageError, match="contradicts itself"):
            backend.save(bad, version)
        assert backend.load().state == good


# ── what is shown ───────────────────────────────────────────────────────────────────────


def test_no_escape_hides_a_line_of_a_plan(folder: Folder) -> None:  # noqa: F811
    """Control characters in a text moved the cursor up and wiped the line with the deletion; the
    reviewer approved what was left. Here every control character of foreign text is spelt out."""
    wipe = "\\u001b[2K\\u001b[1A\\u001b[8m"
    folder.declare("a", more=f'labels = {{ team = "x{wipe}" }}')
    said = folder.done("plan")
    assert "\x1b" not in said.out + said.err + folder.done("plan", "-json").out
    assert "\\x1b[2K\\x1b[1A\\x1b[8m" in said.out


def test_a_password_is_in_no_text_of_its_value() -> None:
    """A tool printed a password in a plan, because one more way to make text of it was forgotten.
    Here the value is in an object that no way of making text opens."""
    hidden = Secret("hunter2-canary")
    for text in (str(hidden), repr(hidden), f"{hidden}", f"{hidden!r:>40}", f"{[hidden]}"):
        assert "hunter2" not in text
