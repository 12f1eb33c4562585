"""`kafkaform check`: a live cluster is judged by the rules of a plan, without a configuration."""

from __future__ import annotations

import json
from pathlib import Path

from ...kit.commands.folder import STATE, Folder

IN_SYNC = 'config = { "min.insync.replicas" = 3 }'
RULE = "topic-min-insync-above-replicas"
ACL = """
resource "kafka_acl" "{}" {{
  acl_principal       = "{}"
  acl_host            = "*"
  acl_operation       = "{}"
  acl_permission_type = "Allow"
  resource_type       = "{}"
  resource_name       = "{}"
}}
"""


def make_topics(folder: Folder) -> None:
    """Two topics that a rule minds, and one that none minds."""
    folder.write("cluster.kf.hcl", "")
    folder.declare("a", "b", more=IN_SYNC)
    folder.write("more.kf.hcl", folder.topic("sound"))
    folder.done("apply", "-auto-approve")


def test_what_a_rule_minds_is_told_by_name(folder: Folder) -> None:
    """Equal findings of several topics are one row; nothing is written; a sound topic is not
    named."""
    make_topics(folder)
    state = (folder.path / STATE).read_bytes()
    said = folder.done("check")
    print(said.out)
    assert f"[{RULE}]" in said.text and "Cautions (" in said.out
    assert f"{folder.prefix}a" in said.text and f"{folder.prefix}b" in said.text
    assert f"{folder.prefix}sound" not in said.text
    assert (folder.path / STATE).read_bytes() == state


def test_no_configuration_is_needed(folder: Folder, tmp_path: Path) -> None:
    """A bootstrap server and properties name the cluster; the rows are the same."""
    make_topics(folder)
    inside = json.loads(folder.done("check", "--json").out)["systems"][0]
    folder.monkeypatch.chdir(tmp_path)
    names = {row["name"] for row in inside["findings"] if row["rule"] == RULE}
    assert {f"{folder.prefix}a", f"{folder.prefix}b"} <= names
    first = next(row for row in inside["findings"] if row["rule"] == RULE)
    assert first["type"] == "kafka_topic" and first["level"] == "caution"
    assert first["path"] == ["config", "min.insync.replicas"]
    assert inside["objects"]["kafka_topic"] >= 3


def test_code_scanning_reads_the_findings(folder: Folder) -> None:
    """SARIF 2.1.0: each result has its rule, its level, a sentence, and a stable place."""
    make_topics(folder)
    document = json.loads(folder.done("check", "--sarif").out)
    (run,) = document["runs"]
    assert document["version"] == "2.1.0"
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert RULE in ids
    results = [row for row in run["results"] if row["ruleId"] == RULE]
    for row in results:
        assert ids[row["ruleIndex"]] == RULE and row["level"] == "warning"
    places = [row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for row in results]
    assert f"kafka/kafka_topic/{folder.prefix}a" in places
    prints = [row["partialFingerprints"]["finding/v1"] for row in run["results"]]
    assert len(set(prints)) == len(prints)


def test_wide_rights_are_told(folder: Folder) -> None:
    """A live ACL for everybody is a danger, one on the cluster a caution; a named right is
    neither."""
    folder.write("cluster.kf.hcl", "")
    named = f"{folder.prefix}orders"
    acls = (
        ACL.format("everybody", "User:*", "Read", "Topic", f"{named}-a"),
        ACL.format("tool", f"User:{folder.prefix}tool", "All", "Cluster", "kafka-cluster"),
        ACL.format("named", f"User:{folder.prefix}named", "Read", "Topic", named),
    )
    folder.write("acls.kf.hcl", "".join(acls))
    folder.done("apply", "-auto-approve")
    rows = json.loads(folder.done("check", "--json").out)["systems"][0]["findings"]
    texts = {row["text"]: (row["rule"], row["level"]) for row in rows}
    everybody = f"everybody has Read, Describe on Topic {named}-a"
    assert texts[everybody] == ("access-held-by-everybody", "danger")
    tool = f"User:{folder.prefix}tool has everything on Cluster kafka-cluster"
    assert texts[tool] == ("access-held-widely", "caution")
    assert f"{folder.prefix}named" not in str(texts)
    assert "danger" in folder.fails(8, "check", "--fail-on=danger")
    subject = f"kafka_acl Allow User:{folder.prefix}tool All on the cluster"
    assert subject in " ".join(folder.done("check").text.split())


def test_what_must_not_be_there_ends_with_an_exit_code(folder: Folder) -> None:
    """A rule, a harm or a level of --fail-on; without a match the check passes."""
    make_topics(folder)
    for name in (RULE, "availability", "caution"):
        assert name in folder.fails(8, "check", f"--fail-on={name}")
    folder.done("check", "--fail-on=topic-name-invalid")
    assert "deletes" in folder.fails(1, "check", "--fail-on=deletes")
    assert "exclude" in folder.fails(1, "check", "--sarif", "--json")
