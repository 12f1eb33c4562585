"""Files of other tools that are templates or not YAML: each is listed with its line and what to do,
and everything else is taken over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.provider.registry import Registry
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.transfer.other_tools import ForeignSource, take_over

from ....kit.commands import rights
from ....kit.commands.stocks import PROVIDER

STRIMZI = """apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: NAME}
spec: {partitions: 1}
"""
JIKKOU = """apiVersion: kafka.jikkou.io/v1
kind: KafkaTopic
metadata: {name: NAME}
spec: {partitions: 1, replicas: 1}
"""
TOPICCTL = """meta: {name: NAME, cluster: one}
spec: {partitions: 1, replicationFactor: 1}
"""
JULIEOPS = """context: acme
projects: [{name: shop, topics: [{name: NAME}]}]
"""
TOPICS = {"strimzi": STRIMZI, "jikkou": JIKKOU, "topicctl": TOPICCTL, "julieops": JULIEOPS}
"""Tool -> a file with one topic."""


def read(tool: str, path: Path) -> tuple[int, list[str]]:
    """The number of objects, and the omissions as `file:line: reason`."""
    made = Registry().load_readers("kafka")[tool]()((path,))
    said = [f"{Path(gap.place).name}: {gap.reason}" for gap in made.omissions]
    return len(made.objects), said


@pytest.mark.parametrize("tool", TOPICS)
@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("# {{ x }}\n\n{{- range .Values.topics }}\nname: {{ .name }}\n{{- end }}\n", 3, "Helm"),
        ("kind: a\n{{#each topics}}\nname: {{name}}\n{{/each}}\n", 2, "Handlebars"),
        ("kind: a\nname: b\n{% for x in y %}\nz: [1\n{% endfor %}\n", 3, "Jinja"),
        ("kind: a\nname: <%= name %>: b\n", 2, "ERB"),
        ("kind: a\nspec:\n  partitions: {{ .Values.partitions }}\n", 3, "Helm"),
        ("kind: a\nbroken line\nname: b\n", 2, "a key without a colon"),
        ("kind: a\nspec: [1, 2\nname: b\n\n\n", 2, "a bracket or brace that is not closed"),
        ("kind: 'a\nname: b\n\n\n", 1, "a quote that is not closed"),
        ("kind:\n  a: 1\n b: 2\n", 3, "indentation"),
        ("kind: a\nname: a\nkind: b\n", 3, "declared twice"),
        ("kind: a\nname: \x01\n", 2, "a character that YAML does not allow"),
    ],
    ids=range(11),
)
def test_one_broken_file_in_a_folder(
    tool: str, content: str, line: int, reason: str, tmp_path: Path
) -> None:
    """The line is that of the fault, and for a template that of its first mark."""
    for name in ("a", "z"):
        (tmp_path / f"{name}.yaml").write_text(TOPICS[tool].replace("NAME", name))
    (tmp_path / "m.yaml").write_text(content)
    count, said = read(tool, tmp_path)
    assert count == 2
    (gap,) = said
    if tool == "jikkou" and "{{" in content:
        # It renders comments, too, and its templates are all Jinja.
        line, reason = (1 if content.startswith("#") else line), "Jinja"
    assert gap.startswith(f"m.yaml:{line}: ")
    assert reason in gap
    assert "jikkou prepare" in gap or tool != "jikkou" or "Jinja" not in gap
    assert "helm template" in gap or "Helm" not in gap


def test_one_broken_document_of_a_file(tmp_path: Path) -> None:
    """The documents before and after it are taken over, and lines are those of the file."""
    names = [STRIMZI.replace("NAME", name) for name in ("a", "b: c", "z")]
    path = tmp_path / "t.yaml"
    path.write_text("%YAML 1.1\n---\n" + "---\n".join(names) + "---\n# the end\n")
    count, said = read("strimzi", path)
    assert count == 2
    (gap,) = said
    assert gap.startswith("t.yaml:10: this is not YAML: a bracket or brace that is not closed")


def test_a_template_in_a_value(tmp_path: Path) -> None:
    """A quoted template is YAML. Its object is left out, and no other one."""
    path = tmp_path / "t.yaml"
    text = STRIMZI.replace("NAME", "'{{ .Values.name }}-orders'")
    variable = text.replace("{{ .Values.name }}", "${NAME}")
    path.write_text("---\n".join((text, STRIMZI.replace("NAME", "b"), variable)))
    count, said = read("strimzi", path)
    assert count == 1
    assert said[0].startswith("t.yaml:3: ")
    assert "helm template" in said[0]
    assert "envsubst" in said[1]


def test_a_file_that_a_state_names(tmp_path: Path) -> None:
    """kafka-gitops: one of the files of a state is broken or missing."""
    (tmp_path / "state.yaml").write_text(
        "settings: {files: {services: s.yaml, users: u.yaml}}\n"
        "topics: {a: {partitions: 1, replication: 1}}\n"
    )
    (tmp_path / "s.yaml").write_text("services:\n  {{ x }}: [\n")
    count, said = read("kafka-gitops", tmp_path)
    assert count == 1
    assert said[0].startswith("s.yaml:2: a template")
    assert "does not exist" in said[1]


def test_nothing_that_could_be_taken(tmp_path: Path) -> None:
    """It is an error that lists everything that was left out."""
    (tmp_path / "main.kf.hcl").write_text(PROVIDER)
    (tmp_path / "m").mkdir()
    (tmp_path / "m/t.yaml").write_text("{{ if .x }}\na: [\n")
    with pytest.raises(UsageError, match="nothing could be taken over") as caught:
        take_over(
            read_configuration(tmp_path, Inputs()), ForeignSource("strimzi", (tmp_path / "m",))
        )
    assert "t.yaml:1: a Helm template" in str(caught.value)


def test_a_value_out_of_range(tmp_path: Path) -> None:
    """The key, the value and the line of each are named, and the other topics are taken over."""
    (tmp_path / "main.kf.hcl").write_text(PROVIDER)
    (tmp_path / "t.yaml").write_text(
        STRIMZI.replace("NAME", "ok")
        + "---\n"
        + STRIMZI.replace("NAME", "few").replace("partitions: 1", "partitions: 0")
        + "---\n"
        + STRIMZI.replace("NAME", "wrong").replace(
            "{partitions: 1}",
            "\n  config:\n    retention.ms: 5\n    max.message.bytes: many",
        )
        + "---\n"
        + STRIMZI.replace("NAME", "huge").replace("partitions: 1", "partitions: 1.5")
    )
    source = ForeignSource("strimzi", (tmp_path / "t.yaml",))
    made = take_over(read_configuration(tmp_path, Inputs()), source)
    assert made.count == 1
    few, wrong, huge = sorted(made.gaps, key=lambda gap: int(gap.split("t.yaml:")[1].split(":")[0]))
    assert "t.yaml:9: kafka_topic few is left out whole: partitions is 0" in few
    assert "t.yaml:17: kafka_topic wrong is left out whole: max.message.bytes = 'many'" in wrong
    assert "t.yaml:22: KafkaTopic huge: partitions is no whole number: '1.5'" in huge


# ── files that cannot be read ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("tool", TOPICS)
def test_a_file_or_folder_without_the_right_to_read_it(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed with the reason, and the others are taken over. Alone, it is an error."""
    with rights.place(monkeypatch) as folder:
        for name in ("a", "m", "z"):
            (folder / f"{name}.yaml").write_text(TOPICS[tool].replace("NAME", name))
        closed = folder / "closed"
        closed.mkdir()
        read(tool, folder)  # what is loaded later is loaded before the rights are gone
        (folder / "m.yaml").chmod(0)
        closed.chmod(0)
        with rights.nobody():
            count, said = read(tool, folder)
            single = read(tool, folder / "m.yaml")
        closed.chmod(0o755)
    assert count == 2
    assert sorted(said) == [
        "closed: cannot be read: Permission denied",
        "m.yaml: cannot be read: Permission denied",
    ]
    assert single == (0, ["m.yaml: cannot be read: Permission denied"])


@pytest.mark.parametrize("tool", TOPICS)
def test_a_file_that_is_not_utf8(tool: str, tmp_path: Path) -> None:
    """As a name in Latin-1: it is listed with its line."""
    for name in ("a", "z"):
        (tmp_path / f"{name}.yaml").write_text(TOPICS[tool].replace("NAME", name))
    (tmp_path / "m.yaml").write_bytes(b"# one line\nkind: caf\xe9\n")
    count, said = read(tool, tmp_path)
    assert count == 2
    (gap,) = said
    assert gap.startswith("m.yaml:2: this is not YAML: a character that YAML does not allow")


def test_one_of_several_states(tmp_path: Path) -> None:
    """A Terraform state that is none is listed; if it is the only one, it is an error."""
    topic = {
        "mode": "managed",
        "type": "kafka_topic",
        "name": "a",
        "instances": [{"attributes": {"name": "a", "partitions": 1, "replication_factor": 1}}],
    }
    good, latin, broken = (tmp_path / f"{name}.tfstate" for name in ("good", "latin", "broken"))
    good.write_text(json.dumps({"version": 4, "resources": [topic]}))
    latin.write_bytes(b'{"version": 4, "x": "caf\xe9"}')
    broken.write_text(json.dumps({"version": 4, "resources": [topic, "b"]}))
    reader = Registry().load_readers("kafka")["tfstate"]()
    made = reader((good, latin, broken))
    assert [item.arguments["name"] for item in made.objects] == ["a"]
    assert [(Path(gap.place).name, gap.reason) for gap in made.omissions] == [
        ("latin.tfstate", "is not JSON, so it is no state"),
        ("broken.tfstate", "cannot be used: `resources` is no list of objects"),
    ]
    with pytest.raises(UsageError, match="is not JSON"):
        reader((latin,))
