"""Plans and states that somebody edited: whatever was changed, and however well it was sealed
again, nothing that nobody approved is sent."""

from __future__ import annotations

import gzip
import io
import json
import marshal
import pickle
import random
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core import canonical
from kafkaform.core.errors import PlanRefused
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import seal_plan
from kafkaform.state import codec as states
from kafkaform.state.model import put_row

from ...kit.commands.folder import Folder
from ...kit.commands.here import Here
from . import flips

# ── bytes ───────────────────────────────────────────────────────────────────────────────


def test_flipped_bytes_of_a_plan() -> None:
    """Bytes of a plan with something in every corner, changed to others."""
    found = flips.plans(random.Random(1), 600)
    assert found.tried == 600 and found.accepted == ()


def test_flipped_bytes_of_a_state() -> None:
    """The same for a state."""
    found = flips.state_flips(random.Random(1), 2_000)
    assert found.tried == 2_000 and found.accepted == ()


# ── edits that were sealed again ────────────────────────────────────────────────────────

Edit = Callable[[dict[str, Any]], None]


def _change(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["changes"][0]
    return found


def _as_delete(data: dict[str, Any]) -> None:
    _change(data)["action"] = "delete"


def _other_name(data: dict[str, Any]) -> None:
    _change(data)["identity"]["key"] = "payments"


def _no_changes(data: dict[str, Any]) -> None:
    data["changes"] = []


def _twice(data: dict[str, Any]) -> None:
    data["changes"].append(_change(data))


def _steps_of(name: str) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        for step in _change(data)["steps"]:
            step["request"]["name"] = name

    return edit


def _payload(data: dict[str, Any]) -> None:
    _change(data)["steps"][0]["payload"]["name"] = "payments"


def _after(data: dict[str, Any]) -> None:
    _change(data)["after"]["partitions"] = 99


def _lineage(data: dict[str, Any]) -> None:
    data["lineage"] = "another"


def _cluster(data: dict[str, Any]) -> None:
    data["instances"]["kafka"]["facts"]["scope_id"] = "another-cluster"


def _instance(data: dict[str, Any]) -> None:
    data["instances"]["kafka.eu"] = data["instances"].pop("kafka")


def _configuration(data: dict[str, Any]) -> None:
    data["configuration"] = "0" * 64


EDITS: Mapping[str, Edit] = {
    "another action": _as_delete,
    "another name": _other_name,
    "no changes": _no_changes,
    "a change twice": _twice,
    "a request that deletes": _steps_of("DeleteTopics"),
    "a request that nobody knows": _steps_of("Nothing"),
    "another payload": _payload,
    "another number": _after,
    "another state": _lineage,
    "another cluster": _cluster,
    "another instance": _instance,
    "another configuration": _configuration,
    "no instances": lambda data: data["instances"].clear(),
    "no steps": lambda data: _change(data)["steps"].clear(),
    "no identity": lambda data: _change(data).pop("identity"),
    "an address of another shape": lambda data: _change(data).update(address=7),
    "an unknown kind": lambda data: _change(data)["identity"].update(kind="kafka_nothing"),
    "a payload of another shape": lambda data: _change(data)["steps"][0].update(payload=[1]),
}


def sealed(body: dict[str, Any]) -> bytes:
    """A plan file with a checksum that fits, whatever it says."""
    plain = {"format": body["format"], "plan": body["plan"]}
    frozen = canonical.loads(canonical.dumps(plain).encode())
    assert isinstance(frozen, FrozenMap)
    whole = FrozenMap({**frozen, "checksum": canonical.digest(frozen)})
    return (canonical.dumps(whole) + "\n").encode()


def test_edits_that_were_sealed_again(folder: Folder) -> None:
    """With a checksum that fits, and even with a new approval, a plan that was edited is refused
    where the reviewed approval is asked for; nothing is sent, and the true plan still applies."""
    folder.declare("a")
    folder.done("plan", "--out=p.json")
    true = (folder.path / "p.json").read_bytes()
    token = decode(true, "p.json").token
    for name, edit in EDITS.items():
        for again in (False, True):
            body = json.loads(true)
            edit(body["plan"])
            data = sealed(body)
            if again:
                data = _approved_again(data)
            (folder.path / "forged.json").write_bytes(data)
            said = folder.run("apply", "forged.json", "--expect", token)
            assert said.code == 4, (name, again, said.text)
    assert folder.topics() == {} and folder.records("intent") == []
    (folder.path / "p.json").write_bytes(true)
    folder.done("apply", "p.json", "--expect", token)
    assert folder.topics() == {"a": 1}


def _approved_again(data: bytes) -> bytes:
    """The same plan with the approval that follows from it, if it still is a plan."""
    try:
        return encode(seal_plan(decode(data, "")))
    except (PlanRefused, LookupError):
        return data


def test_a_plan_is_applied_once(folder: Folder) -> None:
    """Replayed, it does nothing; replayed after somebody went on, it is refused."""
    folder.declare("a")
    folder.done("plan", "--out=p.json")
    folder.done("apply", "p.json")
    with folder.untouched():
        assert "Already applied" in folder.done("apply", "p.json").text
    folder.declare("a", partitions=3)
    folder.done("apply", "--auto-approve")
    folder.fails(4, "apply", "p.json")
    assert folder.topics() == {"a": 3}


def test_a_plan_of_another_configuration(folder: Folder) -> None:
    """What was reviewed is no licence for files that were changed after it."""
    folder.declare("a")
    token = folder.approval()
    folder.write("more.kf.hcl", 'output "x" { value = 1 }\n')
    assert "the configuration differs" in folder.fails(4, "apply", "--expect", token)


def test_a_plan_of_another_version(here: Here) -> None:
    """An older or newer format is refused by its number, sealed or not."""
    body = json.loads(encode(flips.plan()))
    for version in (0, body["format"] - 1, body["format"] + 1, "1", None, 1e9):
        (here.path / "p.json").write_bytes(sealed({**body, "format": version}))
        if version == body["format"]:
            continue
        here.fails("show", "p.json", code=4)


# ── what is no plan ─────────────────────────────────────────────────────────────────────


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (str(self.canary), "w")


def _zip(data: bytes, name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def _tar(data: bytes, name: str, mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{mode}") as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVES: Mapping[str, Callable[[bytes, Path], bytes]] = {
    "zip": lambda data, _: _zip(data, "plan.json"),
    "zip that climbs": lambda data, _: _zip(data, "../climbed"),
    "zip with an absolute name": lambda data, there: _zip(data, str(there)),
    "zip bomb": lambda _, there: _zip(b"0" * 10_000_000, str(there)),
    "gzip": lambda data, _: gzip.compress(data),
    "gzip bomb": lambda _, __: gzip.compress(b"0" * 10_000_000),
    "tar": lambda data, _: _tar(data, "plan.json", ""),
    "tar that climbs": lambda data, _: _tar(data, "../climbed", "gz"),
    "tar.bz2": lambda data, there: _tar(data, str(there), "bz2"),
    "tar.xz": lambda data, there: _tar(data, str(there), "xz"),
    "pickle": lambda _, there: pickle.dumps(Bomb(there)),
    "old pickle": lambda _, there: pickle.dumps(Bomb(there), protocol=0),
    "marshal": lambda _, __: marshal.dumps(compile("1", "", "eval")),
    "YAML with a tag": lambda _, there: f'!!python/object/apply:open ["{there}", w]'.encode(),
    "two plans": lambda data, _: data + data,
    "a plan behind a BOM": lambda data, _: b"\xef\xbb\xbf" + data,
    "nothing": lambda _, __: b"",
    "a deep list": lambda _, __: b"[" * 100_000,
    "NaN": lambda data, _: data.replace(b'"format":', b'"x":NaN,"format":', 1),
    "a member twice": lambda data, _: data.replace(b'"format":', b'"format":0,"format":', 1),
    "a huge number": lambda data, _: data.replace(
        b'"format":', b'"x":' + b"9" * 5000 + b',"format":', 1
    ),
}


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("command", ["show", "apply"])
def test_what_is_no_plan(here: Here, kind: str, command: str) -> None:
    """Archives, pickles and other encodings are refused as no plan: nothing is unpacked, and
    nothing of them is run."""
    there = here.path / "made"
    data = ARCHIVES[kind](encode(flips.plan()), there)
    block = 'provider "kafka" {\n  bootstrap_servers = ["127.0.0.1:1"]\n}\n'
    here.write("main.kf.hcl", block)
    here.write("p.json", data)
    before = here.files()
    said = here.run(command, "p.json")
    assert said.code == 4, said.text
    made = {name for name in here.files().keys() - before.keys() if ".kafkaform" not in name}
    assert made == set() and not (here.path.parent / "climbed").exists()


# ── rows ────────────────────────────────────────────────────────────────────────────────


def test_a_row_by_hand_deletes_nothing(folder: Folder) -> None:
    """Somebody writes a topic of others into the state, with a checksum that fits, the true topic
    id and the proof of another topic, and a merged block that destroys it: the plan is refused.
    With another topic id the row is taken for outdated and forgotten. The topic stays."""
    folder.declare("a")
    folder.done("apply", "--auto-approve")
    folder.create("theirs")
    path = folder.path / "kafkaform.state.json"
    state = states.decode(path.read_bytes(), "state")
    (row,) = state.objects.values()
    theirs = _topic_id(folder, "theirs")
    folder.write(
        "removed.kf.hcl",
        "removed {\n  from = kafka_topic.theirs\n  lifecycle {\n    destroy = true\n  }\n}\n",
    )
    mine = Identity("kafka", "kafka_topic", f"{folder.prefix}theirs")
    for incarnation, origin in ((theirs, row.origin), (theirs, 1), (row.incarnation, row.origin)):
        forged = replace(
            row,
            identity=mine,
            owners=("kafka_topic.theirs",),
            incarnation=incarnation,
            origin=origin,
            protected="no",
        )
        path.write_bytes(states.encode(put_row(state, forged)))
        said = folder.run("apply", "--auto-approve")
        assert said.code == (4 if incarnation == theirs else 0), said.text
        assert folder.topics() == {"a": 1, "theirs": 1}


def _topic_id(folder: Folder, name: str) -> str:
    """The incarnation of a topic, as kafkaform would record it."""
    folder.write("look.kf.hcl", folder.topic(name, more="lifecycle {\n    adopt = true\n  }"))
    folder.done("plan", "--out=look.json")
    plan = decode((folder.path / "look.json").read_bytes(), "look.json")
    (folder.path / "look.kf.hcl").unlink()
    (found,) = (c for c in plan.changes if c.identity.key == f"{folder.prefix}{name}")
    assert found.incarnation
    return found.incarnation
