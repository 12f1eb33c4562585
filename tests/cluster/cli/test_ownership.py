"""Whose is it? Several configurations on one real cluster, old states, other people's topics of the
same name: nothing is changed or deleted that is not certainly ours."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from msgspec.structs import replace

from kafkaform.core.value import FrozenMap
from kafkaform.state import codec

from ...kit.commands.folder import LOG, STATE, Folder

DESTROY = "removed {{\n  from = kafka_topic.{}\n  lifecycle {{ destroy = true }}\n}}\n"


@contextmanager
def beside(mine: Folder) -> Iterator[Folder]:
    """Another folder with a state of its own, for the same cluster; the current one inside."""
    path = mine.path / "other"
    path.mkdir(exist_ok=True)
    other = Folder(path, mine.prefix, mine.broker, mine.admin, mine.capsys, mine.monkeypatch)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        other.connect()
        yield other


def destroy(folder: Folder) -> list[str]:
    return ["destroy", "--confirm", folder.broker.cluster_id]


def recreate(folder: Folder, name: str, partitions: int) -> None:
    """Somebody deletes a topic and makes another one of that name."""
    topic = f"{folder.prefix}{name}"
    for future in folder.admin.delete_topics([topic]).values():
        future.result(60)
    folder.until(lambda: name not in folder.topics())
    for future in folder.admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(60)
    folder.until(lambda: folder.topics().get(name) == partitions)


def kept(folder: Folder, to: Path) -> None:
    """A backup of state and log."""
    to.mkdir()
    for name in (STATE, LOG):
        shutil.copy(folder.path / name, to / name)


def test_one_declares_what_the_other_owns(folder: Folder) -> None:
    """It is blocked as not managed, and neither changed nor recorded; the other goes on."""
    folder.declare("a", more='config = { "retention.ms" = "1000000" }')
    folder.done("apply", "-auto-approve")
    with beside(folder) as other:
        other.declare("a", "b", partitions=3)
        other.fails(8, "plan", "-fail-on=blocked")
        said = other.run("apply", "-auto-approve")
        assert said.code == 8
        assert "kafkaform does not manage it" in said.text
        assert other.done("state", "list").out == "kafka_topic.b\n"
    assert folder.topics() == {"a": 1, "b": 3}
    assert folder.config("a")["retention.ms"] == "1000000"
    assert "No changes" in folder.done("plan").out


def test_what_two_have_adopted_goes_by_one_word_and_is_seen_by_the_other(folder: Folder) -> None:
    """A topic that a second configuration adopts is protected there, too: a missing block and one
    that forgets leave it. When one of them does delete it, the other plans to make it anew in
    plain sight, and does not drop it."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    with beside(folder) as other:
        other.declare("a", "b")
        other.done("apply", "-auto-approve", "--adopt", "kafka_topic.a")
        other.declare("b")
        assert "its block is gone, and it is protected" in other.done("apply", "-auto-approve").text
        assert "a" in folder.topics()
        other.write("removed.kf.hcl", DESTROY.format("a"))
        other.done("apply", "-auto-approve")
        assert set(folder.topics()) == {"b"}
    provider = folder.path / "provider.kf.hcl"
    provider.write_text(provider.read_text().replace('"5s"', '"1s"'))  # how long it is looked for
    said = folder.done("plan")
    assert "1 to add" in said.out and "kafka_topic.a" in folder.done("state", "list").out


def test_a_topic_that_others_made_anew_is_theirs(folder: Folder) -> None:
    """Deleted and recreated by somebody under the same name: declared it is blocked, removed it is
    forgotten, and `destroy` leaves it."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    recreate(folder, "a", 5)
    folder.declare("a", "b", more='config = { "retention.ms" = "1000000" }')
    said = folder.run("apply", "-auto-approve")
    assert said.code == 8
    assert "recreated outside" in said.text
    folder.declare("b")
    folder.write("removed.kf.hcl", DESTROY.format("a"))
    assert "recreated outside and is left alone" in folder.done("apply", "-auto-approve").text
    assert folder.topics() == {"a": 5, "b": 1}
    recreate(folder, "b", 6)
    folder.done(*destroy(folder))
    assert folder.topics() == {"a": 5, "b": 6}


def test_an_old_state_and_log_delete_nothing_of_today(folder: Folder, tmp_path: Path) -> None:
    """Both are put back from a backup: what was made since is not managed, and stays."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    kept(folder, tmp_path / "backup")
    folder.declare("a", "c")
    folder.done("apply", "-auto-approve")
    for name in (STATE, LOG):
        shutil.copy(tmp_path / "backup" / name, folder.path / name)
    folder.declare("a")
    folder.write("removed.kf.hcl", DESTROY.format("c"))
    assert "No changes" in folder.done("apply", "-auto-approve").text
    (folder.path / "removed.kf.hcl").unlink()
    folder.declare("a", "c")
    assert "kafkaform does not manage it" in folder.fails(8, "plan")
    folder.done(*destroy(folder))
    assert set(folder.topics()) == {"c"}


def test_an_old_state_with_todays_log_is_brought_up_to_date(folder: Folder, tmp_path: Path) -> None:
    """Only the state is put back: the log tells what came since, so that nothing is made or
    deleted again; and an old log under today's state is refused."""
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    kept(folder, tmp_path / "backup")
    folder.declare("a", "c")
    folder.done("apply", "-auto-approve")
    today = (folder.path / STATE).read_bytes()
    intents = len(folder.records("intent"))
    shutil.copy(tmp_path / "backup" / STATE, folder.path / STATE)
    assert "Took 1 outcome" in folder.done("apply", "-auto-approve").text
    assert folder.done("state", "list").out.split() == ["kafka_topic.a", "kafka_topic.c"]
    assert len(folder.records("intent")) == intents
    (folder.path / STATE).write_bytes(today)
    shutil.copy(tmp_path / "backup" / LOG, folder.path / LOG)
    for command in (["plan"], ["apply", "-auto-approve"], destroy(folder)):
        assert "is known to exist" in folder.fails(9, *command)


def test_a_state_of_another_cluster_is_good_for_nothing(folder: Folder) -> None:
    """Whatever would change something is refused with both ids: deletions by a block or by
    `destroy`, under either id, and imports."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    file, elsewhere = folder.path / STATE, "AAAAAAAAAAAAAAAAAAAAAA"
    state = codec.decode(file.read_bytes(), STATE)
    file.write_bytes(codec.encode(replace(state, providers=FrozenMap(kafka=elsewhere))))
    folder.declare("b")
    folder.write("removed.kf.hcl", DESTROY.format("a"))
    for command in (
        ["plan"],
        ["apply", "-auto-approve"],
        destroy(folder),
        ["destroy", "--confirm", elsewhere],
        ["import", "kafka_topic.b", f"{folder.prefix}b"],
    ):
        said = folder.fails(4, *command)
        assert elsewhere in said and folder.broker.cluster_id in said, command


def test_no_flag_goes_round_explicit_protection(folder: Folder) -> None:
    """`prevent_destroy` holds against a `removed` block, --max-deletes, --target and `destroy`,
    which takes the others; it is lowered by a change of its own, and then the topic may go."""
    held = folder.topic("a", more="lifecycle {\n    prevent_destroy = true\n  }")
    folder.write("topics.kf.hcl", held + folder.topic("b"))
    folder.done("apply", "-auto-approve")
    folder.declare("b")
    folder.write("removed.kf.hcl", DESTROY.format("a"))
    for flags in ([], ["--max-deletes", "9"], ["--target", "kafka_topic.a"]):
        said = folder.run("apply", "-auto-approve", *flags)
        assert "protected by prevent_destroy" in said.text
    assert "protected by prevent_destroy" in folder.run(*destroy(folder)).text
    assert set(folder.topics()) == {"a"}
    (folder.path / "removed.kf.hcl").unlink()
    lowered = held.replace("prevent_destroy = true", "prevent_destroy = false")
    folder.write("topics.kf.hcl", lowered)
    folder.done("apply", "-auto-approve")
    folder.done(*destroy(folder))
    assert folder.topics() == {}


def test_a_pipeline_that_never_deletes(folder: Folder) -> None:
    """--max-deletes 0 stops a single reviewed delete, and a plan that it stopped is applied by no
    other way."""
    folder.declare("a", "b")
    folder.done("apply", "-auto-approve")
    folder.declare("b")
    folder.write("removed.kf.hcl", DESTROY.format("a"))
    said = folder.fails(8, "plan", "--max-deletes", "0", "-out=p.kfplan")
    assert "--max-deletes allows 0" in said
    folder.fails(8, "apply", "-auto-approve", "--max-deletes", "0")
    folder.fails(8, "apply", "p.kfplan")
    assert set(folder.topics()) == {"a", "b"}
