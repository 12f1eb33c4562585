"""Every tool of `make bench-peers` is asked for the same world."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafkaform.core.resource import Desired
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration

from ...bench.peers import go_tools, hcl_files, tools, yaml_files
from ...bench.peers.hcl_files import Form
from ...bench.peers.launcher import ROOT
from ...bench.peers.tools import Address, Given, Tool
from ...bench.peers.world import Size, World, change_world, make_world, parse_size
from ...kit.kafka.terraform import BLOCK
from ...kit.kafka.terraform import desired as read_terraform

SIZE = parse_size("230x2+120acls+110quotas")
WORLDS = {"before": make_world(SIZE), "after": change_world(make_world(SIZE))}
ADDRESS = Address("localhost:9092", "secret", "cluster")
FORMS = pytest.mark.parametrize("form", list(Form))
EITHER = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


def specify(world: World) -> dict[tuple[str, str], dict[str, Any]]:
    """Type and key -> what a tool must want of the object."""
    topics = {
        ("kafka_topic", topic.name): {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication_factor": 1,
            "config": dict(topic.config),
        }
        for topic in world.topics
    }
    acls = {
        ("kafka_acl", f"User:{acl.user}|*|{acl.operation}|Allow|Topic|{acl.topic}|Literal"): {
            "acl_principal": f"User:{acl.user}",
            "acl_operation": acl.operation,
            "acl_permission_type": "Allow",
            "acl_host": "*",
            "resource_name": acl.topic,
            "resource_type": "Topic",
            "resource_pattern_type_filter": "Literal",
        }
        for acl in world.acls
    }
    quotas = {
        ("kafka_quota", f"user={quota.user}"): {
            "config": {"producer_byte_rate": quota.producer_byte_rate}
        }
        for quota in world.quotas
    }
    return {**topics, **acls, **quotas}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def check(found: Desired, world: World) -> None:
    """What kafkaform makes of files is the specification, and nothing else."""
    assert not found.diagnostics
    wanted = specify(world)
    assert {(d.identity.kind, d.identity.key) for d in found.declared} == wanted.keys()
    for declared in found.declared:
        known = wanted[declared.identity.kind, declared.identity.key]
        assert {name: declared.attributes[name] for name in known} == known


def make_tofu(folder: Path) -> Tool:
    return tools.make_tofu(go_tools.Binaries(folder), folder, folder, "secret")


@FORMS
@EITHER
def test_kafkaform_reads_the_specification(form: Form, world: World, tmp_path: Path) -> None:
    """Flat blocks, for_each and modules declare the same objects, also after the change."""
    tool = tools.make_kafkaform("kafkaform", ROOT, "")
    for imports in (False, True):
        write(tmp_path, tool.write(Given(SIZE, world, form, ADDRESS, imports)))
        built = read_configuration(tmp_path, Inputs()).evaluate(offline=True)
        check(built.desired, world)
        assert len(built.desired.imports) == (len(specify(world)) if imports else 0)


def test_large_worlds_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into maps and files that kafkaform reads, with the same objects and imports."""
    monkeypatch.setattr(hcl_files, "PER_MAP", 2)
    world = WORLDS["before"]
    given = Given(SIZE, world, Form.FOR_EACH, ADDRESS, imports=True)
    files = tools.make_kafkaform("kafkaform", ROOT, "").write(given)
    assert "acls_1_map.kf.hcl" in files and "import_acls_1.kf.hcl" in files
    write(tmp_path, files)
    built = read_configuration(tmp_path, Inputs()).evaluate(offline=True)
    check(built.desired, world)
    assert len(built.desired.imports) == len(specify(world))


@FORMS
def test_opentofu_gets_the_same_text(form: Form, tmp_path: Path) -> None:
    """OpenTofu's files are kafkaform's, but for the provider blocks and the import of quotas."""
    given = Given(SIZE, WORLDS["before"], form, ADDRESS, imports=True)
    ours = tools.make_kafkaform("kafkaform", ROOT, "").write(given)
    theirs = make_tofu(tmp_path).write(given)
    same = {name.removesuffix(".kf.hcl"): text for name, text in ours.items()}
    assert {name.removesuffix(".tf") for name in theirs} - same.keys() <= {"modules/team/needs"}
    for name in same.keys() - {"provider", "import_quotas"}:
        assert theirs[f"{name}.tf"] == same[name]


def test_opentofu_text_means_the_specification(tmp_path: Path) -> None:
    """Flat blocks as kafkaform reads a folder of Terraform's."""
    given = Given(SIZE, WORLDS["before"], Form.FLAT, ADDRESS)
    files = make_tofu(tmp_path).write(given)
    text = "\n".join(text for name, text in files.items() if name != "provider.tf")
    check(read_terraform(BLOCK + text), WORLDS["before"])


@EITHER
def test_topicctl_gets_the_same_topics(world: World) -> None:
    """A file for each topic, whose retention in minutes is what others get in milliseconds."""
    files = yaml_files.write_topicctl_files(world)
    found = {}
    for text in files.values():
        read = yaml.safe_load(text)
        spec = read["spec"]
        retention = {"retention.ms": spec["retentionMinutes"] * yaml_files.MINUTE_MS}
        config = {k: str(v) for k, v in {**spec["settings"], **retention}.items()}
        found[read["meta"]["name"]] = (spec["partitions"], config)
    assert found == {t.name: (t.partitions, dict(t.config)) for t in world.topics}


@EITHER
def test_jikkou_gets_the_same_world(world: World) -> None:
    """Its lists of topics and quotas and its users' ACLs say what the specification says."""
    topics, acls, quotas = {}, set(), {}
    for document in yaml.safe_load_all(yaml_files.write_jikkou_file(world)):
        if document["kind"] == "KafkaTopicList":
            for item in document["items"]:
                spec = item["spec"]
                topics[item["metadata"]["name"]] = (spec["partitions"], spec["configs"])
        elif document["kind"] == "KafkaClientQuotaList":
            for item in document["items"]:
                spec = item["spec"]
                quotas[spec["entity"]["user"]] = spec["configs"]["producerByteRate"]
        else:
            for rule in document["spec"]["acls"]:
                (operation,) = rule["operations"]
                principal = document["metadata"]["name"]
                acls.add((principal, rule["resource"]["pattern"], operation.replace("_", "")))
    assert topics == {t.name: (t.partitions, dict(t.config)) for t in world.topics}
    assert acls == {(f"User:{a.user}", a.topic, a.operation.upper()) for a in world.acls}
    assert quotas == {q.user: q.producer_byte_rate for q in world.quotas}


def test_jikkou_can_be_told_to_delete_everything() -> None:
    """Each resource of the file for a destroy has the annotation that deletes it."""
    text = yaml_files.write_jikkou_file(WORLDS["before"], deleted=True)
    marks = []
    for document in yaml.safe_load_all(text):
        marks += [item["metadata"] for item in document.get("items", [document])]
    assert marks
    assert all(mark["annotations"] == {"jikkou.io/delete": True} for mark in marks)


def test_one_percent_changes() -> None:
    """One object of a hundred differs, at least one, and nothing is added or lost."""
    for size in (Size(topics=1000, acls=700, quotas=300), Size(topics=5, acls=5, quotas=5)):
        before = make_world(size)
        after = change_world(before)
        for kind in ("topics", "acls", "quotas"):
            old, new = getattr(before, kind), getattr(after, kind)
            assert len(old) == len(new) == len(set(map(repr, new)))
            changed = sum(a != b for a, b in zip(old, new, strict=True))
            assert changed == max(1, len(old) // 100)


@pytest.mark.parametrize("text", ["1000x3", "10000acls", "7quotas", "100x1+50acls+20quotas"])
def test_a_size_is_read_as_it_is_written(text: str) -> None:
    """`--sizes` and figures.json spell a size in the same way."""
    assert str(parse_size(text)) == text


@pytest.mark.parametrize("text", ["", "1000", "x3", "0x3", "5acls+6acls", "10 acls", "10x1+"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """A typing error measures nothing."""
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)
