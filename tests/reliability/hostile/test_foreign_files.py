"""`import --from` on files that somebody has damaged, or written to do harm: a fault that names the
place, never a traceback, a secret, code, or an endless run."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafkaform.core.errors import UsageError
from kafkaform.provider.contract import ForeignFiles
from kafkaform.provider.registry import Registry
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.transfer.other_tools import ForeignSource, take_over
from kafkaform_kafka.takeover import declarations, documents

from ...kit.commands.stocks import PROVIDER
from ...kit.kafka.takeover import CANARY, copy_source, list_tools
from ...kit.quick import examples

YAML_TOOLS = [tool for tool in list_tools() if tool != "tfstate"]
ROUNDS = examples(60)
NONSENSE: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 1.5, "", " ", "a\nb", '${file("/etc/passwd")}', "%{ if true }"),
    *("\u202e", "\x7f", "a" * 5000, [], {}, [[]], {"a": {"b": []}}, ["x", {"y": None}]),
)


def read(tool: str, path: Path) -> ForeignFiles:
    return Registry().load_readers("kafka")[tool]()((path,))


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list):
            yield from list_places(inner)


def damage(value: Any, chance: random.Random) -> Any:
    """A copy in which up to three values are nonsense, missing, or renamed."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        places = list(list_places(value))
        if not places:
            break
        holder, key = chance.choice(places)
        match chance.randint(0, 3):
            case 0 | 1:
                holder[key] = chance.choice(NONSENSE)
            case 2:
                del holder[key]
            case 3 if isinstance(holder, dict):
                holder[f"{key}x"] = holder.pop(key)
    return value


@pytest.mark.parametrize("tool", list_tools())
def test_damaged_values(tool: str, tmp_path: Path) -> None:
    """Wrong types, missing and renamed fields anywhere: the rest of the file is taken over, and the
    text that is written is valid and has neither a secret nor code in it."""
    chance = random.Random(tool)
    source = copy_source(tool, tmp_path)
    paths = [source] if source.is_file() else list(source.rglob("*.y*ml"))

    def load(text: str) -> Any:
        return [json.loads(text)] if tool == "tfstate" else list(yaml.safe_load_all(text))

    texts = {p: p.read_text() for p in paths if "{%" not in p.read_text()}
    # Without its mark, which damage can remove, this is a config like any other.
    plain = {p: text.replace('"compression.type": "canary"', "") for p, text in texts.items()}
    originals = {p: load(text) for p, text in plain.items()}
    folder = tmp_path / "folder"
    write(folder / "main.kf.hcl", PROVIDER)
    configuration = read_configuration(folder, Inputs())
    for _ in range(ROUNDS):
        path = chance.choice(list(originals))
        broken = damage(originals[path], chance)
        path.write_text(
            json.dumps(broken[0] if broken else {})
            if tool == "tfstate"
            else yaml.safe_dump_all(broken, allow_unicode=True)
        )
        try:
            made = take_over(configuration, ForeignSource(tool, (source,)))
        except UsageError as fault:
            assert CANARY not in fault.message + fault.advice
        else:
            assert CANARY not in made.text + "".join(made.gaps)
        path.write_text(
            json.dumps(originals[path][0])
            if tool == "tfstate"
            else yaml.safe_dump_all(originals[path])
        )


@pytest.mark.parametrize("tool", YAML_TOOLS)
@pytest.mark.parametrize(
    "content",
    [
        b"kind: [canary",
        b"\xff\xfe\x00canary",
        b"\x00" * 100,
        b"a: *canary\n",
        b"? [canary, b]\n: 1\n",
        b"a: 1\na: canary\n",
        b"a: &x [*x]\n",
        b"%YAML 9.9\n---\ncanary: %",
        b"[" * 5000,
        b"- " * 5000 + b"x",
        b"!!python/object/apply:os.system ['echo canary']\n",
    ],
    ids=repr,
)
def test_what_is_not_yaml(tool: str, content: bytes, tmp_path: Path) -> None:
    """Text that no parser takes is refused with its place, and not quoted; a tag names no class."""
    path = write(tmp_path / "state.yaml", content)
    try:
        read_ = read(tool, path)
    except UsageError as fault:
        assert "state.yaml" in fault.message
        assert CANARY not in fault.message.replace("'canary'", "")
    else:
        assert not read_.objects
        assert read_.omissions


def test_aliases_that_unfold_to_billions(tmp_path: Path) -> None:
    """Nine levels of nine aliases each end at the limit of values, at once."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    path = write(tmp_path / "bomb.yaml", "\n".join(lines))
    with pytest.raises(UsageError, match=f"more than {documents.MAX_NODES} values"):
        read("strimzi", path)


def test_files_that_are_too_many_or_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a folder that is too large is listed and left out. Too many of them, or too much
    altogether, is an error."""
    for name in "abc":
        write(tmp_path / f"{name}.yaml", "kind: " + "x" * 50)
    with monkeypatch.context() as patch:
        patch.setattr(declarations, "MAX_FILE", 20)
        large = read("strimzi", tmp_path)
    assert not large.objects
    assert [Path(omission.place).name for omission in large.omissions] == [
        "a.yaml",
        "b.yaml",
        "c.yaml",
    ]
    for limit, value in (("MAX_TOTAL", 100), ("MAX_FILES", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(declarations, limit, value)
            with pytest.raises(UsageError):
                read("strimzi", tmp_path)


@pytest.mark.parametrize("tool", list_tools())
def test_what_is_no_file(tool: str, tmp_path: Path) -> None:
    """A pipe, which would never end, and a path that leads nowhere."""
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path / "nowhere.yaml"):
        with pytest.raises(UsageError):
            read(tool, path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/loop").symlink_to(tmp_path / "folder")
    if tool not in ("tfstate", "kafka-gitops"):
        assert not read(tool, tmp_path / "folder").objects


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("canary", "not JSON"),
        ("[1]", "no state"),
        ('{"version": 3, "modules": []}', "no state of version 4"),
        ('{"version": 4, "resources": "canary"}', "no list"),
        ('{"encrypted_data": "canary", "encryption_version": "v0"}', "is encrypted"),
        ("[" * 100_000, "not JSON"),
        ('{"version": 4, "serial": ' + "9" * 6000 + "}", "not JSON"),
    ],
    ids=range(7),
)
def test_what_is_no_state(content: str, said: str, tmp_path: Path) -> None:
    """Each file that is no readable state is refused with what to do, and not quoted."""
    with pytest.raises(UsageError, match=said) as caught:
        read("tfstate", write(tmp_path / "x.tfstate", content))
    assert CANARY not in caught.value.message + caught.value.advice


def topic(name: str, partitions: int) -> str:
    return (
        f"apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {{name: {name}}}\n"
        f"spec: {{partitions: {partitions}}}\n---\n"
    )


def test_one_object_twice(tmp_path: Path) -> None:
    """The same topic twice is one block; with different values it is none, because nobody knows
    which of them is live."""
    path = write(
        tmp_path / "a/t.yaml", topic("a", 1) + topic("b", 2) + topic("a", 1) + topic("b", 3)
    )
    write(tmp_path / "folder/main.kf.hcl", PROVIDER)
    made = take_over(
        read_configuration(tmp_path / "folder", Inputs()), ForeignSource("strimzi", (path,))
    )
    assert made.count == 1
    assert 'name       = "a"' in made.text
    assert '"b"' not in made.text
    assert [gap for gap in made.gaps if "differs there" in gap]


def test_names_that_are_code(tmp_path: Path) -> None:
    """A name that would be an expression in HCL is refused or stays a text."""
    text = topic("'${file(\"/etc/passwd\")}'", 1).replace("KafkaTopic", "KafkaUser") + topic(
        "ok", 1
    )
    user = text.replace("spec: {partitions: 1}", "spec: {quotas: {producerByteRate: 1}}", 1)
    path = write(tmp_path / "a/t.yaml", user)
    write(tmp_path / "folder/main.kf.hcl", PROVIDER)
    made = take_over(
        read_configuration(tmp_path / "folder", Inputs()), ForeignSource("strimzi", (path,))
    )
    assert '"$${file(\\"/etc/passwd\\")}"' in made.text
