"""The JSON Schemas of kafkaform's files: what it writes fits, and what was damaged does not."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs import schemas
from kafkaform.audit.records import MEMBERS as RECORD_MEMBERS
from kafkaform.core import canonical
from kafkaform.core.clock import SimulatedClock
from kafkaform.core.errors import KafkaformError
from kafkaform.core.landing import REGISTER, SOURCES
from kafkaform.core.resource import Coverage, CoverageKind
from kafkaform.core.value import FrozenMap
from kafkaform.language.declare.modules import Package
from kafkaform.plan.codec import encode
from kafkaform.render.judgement import make_check_data
from kafkaform.render.stream import Stream
from kafkaform.render.terraform import to_json
from kafkaform.state.codec import MEMBERS as STATE_MEMBERS
from kafkaform.state.codec import encode as encode_state
from kafkaform.workflow.modules.cache import Lock, render_locks

from .kit.states import SMALL
from .test_cases import CASES, plan_of, workspace_of
from .unit.plan.test_standing import check as check_boxes

jsonschema = pytest.importorskip(
    "jsonschema", reason="jsonschema is missing: pip install -e '.[test]'"
)

TESTS = Path(__file__).resolve().parent
STATES = sorted((TESTS / "cases").glob("*/state.json"))
LANDED = TESTS / "unit/formats/landed"
LOGS = sorted((TESTS / "cases/audit").glob("*.jsonl"))
STREAMS = sorted((TESTS / "unit/render/golden").glob("*.jsonl"))


def make_validator(name: str) -> Any:
    """Of a schema as it is in the folder."""
    schema = json.loads((schemas.FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_events(path: Path) -> list[Any]:
    """The events of a golden file, with the time and the level that a stream adds."""
    stream = Stream(SimulatedClock())
    return [json.loads(stream.render_line(event)) for event in read_lines(path)]


def test_the_schemas_are_those_that_the_code_makes() -> None:
    """`python docs/schemas.py` writes them."""
    written = {path.name: path.read_text() for path in schemas.FOLDER.iterdir()}
    assert written == schemas.pages()


def test_no_member_is_forgotten() -> None:
    """The tables that are written by hand have every member."""
    assert set(schemas.STATE) == STATE_MEMBERS
    record = json.loads((schemas.FOLDER / "audit-record.schema.json").read_text())
    assert set(record["properties"]) == RECORD_MEMBERS


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.parent.name)
def test_every_state_fits(path: Path) -> None:
    """Those of all golden cases."""
    make_validator("state").validate(json.loads(path.read_bytes()))


def test_every_plan_fits() -> None:
    """Each golden case's plan, as it is saved and as programs get it."""
    validator, shown, made = make_validator("plan"), make_validator("show"), 0
    for folder in CASES:
        try:
            plan = plan_of(workspace_of(folder), folder)
        except KafkaformError:
            continue
        validator.validate(json.loads(encode(plan)))
        shown.validate(json.loads(canonical.dumps(to_json(plan))))
        made += 1
    assert made > 50


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_record_fits(path: Path) -> None:
    """Those of this version and of earlier ones."""
    records, validator = read_lines(path), make_validator("audit-record")
    assert records
    for record in records:
        validator.validate(record)


def test_every_manifest_and_checkpoint_fits() -> None:
    """Those that earlier versions have written; without one of its members, no manifest fits."""
    folder = TESTS / "unit/formats/written"
    checkpoints = sorted(folder.glob("*/kafkaform.audit/checkpoints/*.json.gz"))
    assert checkpoints
    for path in checkpoints:
        make_validator("audit-checkpoint").validate(json.loads(gzip.decompress(path.read_bytes())))
    manifests = sorted(folder.glob("*/kafkaform.audit/manifest.json"))
    assert manifests
    validator = make_validator("audit-manifest")
    for path in manifests:
        document = json.loads(path.read_bytes())
        validator.validate(document)
        moved = change(document, "segments", 0, "archived", value="s3://cold/log")
        validator.validate(moved)
        for name in document:
            assert not validator.is_valid(change(document, name, drop=True))
        for name in document["segments"][0]:
            assert not validator.is_valid(change(document, "segments", 0, name, drop=True))
            assert not validator.is_valid(change(document, "segments", 0, name, value=-1))
        assert not validator.is_valid({**document, "strange": 1})


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name)
def test_every_event_fits(path: Path) -> None:
    """Each line that plans and applies print for programs."""
    validator = make_validator("event")
    for event in read_events(path):
        validator.validate(event)
        assert event["type"] in schemas.EVENTS


def test_every_check_fits() -> None:
    """Findings about objects and about a system, gaps, and a system without findings; without one
    of its members, none fits."""
    validator = make_validator("check")
    whole = check_boxes({"twin1": "red", "twin2": "grey", "a": "red"}, values=FrozenMap(weighs=1))
    failed = check_boxes({}, Coverage(CoverageKind.FAILED))
    document = json.loads(canonical.dumps(make_check_data([whole, failed])))
    assert {row["name"] for row in document["systems"][0]["findings"]} > {None, "a"}
    assert document["systems"][1]["gaps"]
    validator.validate(document)
    for member in document["systems"][0]:
        assert not validator.is_valid(change(document, "systems", 0, member, drop=True))
    for member in document["systems"][0]["findings"][0]:
        assert not validator.is_valid(
            change(document, "systems", 0, "findings", 0, member, drop=True)
        )


@pytest.mark.parametrize(
    ("ending", "name"),
    [(".jsonl", "landing-row"), (".meta.json", "landing-meta"), (".json", "landing-register")],
)
def test_every_landing_file_fits(ending: str, name: str) -> None:
    """Those that earlier versions have written; without one of its members, none fits."""
    folders = (REGISTER,) if name == "landing-register" else SOURCES
    paths = [path for one in folders for path in LANDED.glob(f"*/{one}/**/*{ending}")]
    validator = make_validator(name)
    documents = [document for path in paths for document in read_lines(path)]
    assert documents
    for document in documents:
        validator.validate(document)
        assert not validator.is_valid({**document, "strange": 1})
    needed = "clusters" if name == "landing-register" else "source" if "meta" in name else "key"
    assert not validator.is_valid(change(documents[0], needed, drop=True))


def test_the_lock_file_of_modules_fits() -> None:
    package = Package("git::https://git.example/modules.git", "v1")
    lock = Lock(package.source, package.ref, "0" * 40, "1" * 64)
    document, validator = json.loads(render_locks({package: lock})), make_validator("modules")
    validator.validate(document)
    assert not validator.is_valid(change(document, "modules", 0, "commit", drop=True))
    assert not validator.is_valid(change(document, "format", value=2))


def change(document: Any, *path: Any, value: Any = None, drop: bool = False) -> Any:
    """A copy with another value at a path, or without it."""
    made = copy.deepcopy(document)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    if drop:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


STATE_DAMAGE: tuple[Callable[[Any], Any], ...] = (
    lambda one: change(one, "serial", value="7"),
    lambda one: change(one, "lineage", drop=True),
    lambda one: change(one, "more", value=1),
    lambda one: change(one, "format", value=3),
    lambda one: change(one, "checksum", value="abc"),
    lambda one: change(one, "objects", 0, "owners", value=[]),
    lambda one: change(one, "objects", 0, "protected", value="perhaps"),
    lambda one: change(one, "objects", 0, "origin", value=0),
    lambda one: change(one, "outputs", "url", drop=False, value={"value": 1}),
)


@pytest.mark.parametrize("damage", STATE_DAMAGE)
def test_a_damaged_state_does_not_fit(damage: Callable[[Any], Any]) -> None:
    """A wrong type, a missing or a strange member, a value that nothing has."""
    state, validator = json.loads(encode_state(SMALL)), make_validator("state")
    validator.validate(state)
    assert not validator.is_valid(damage(state))


def test_a_damaged_plan_record_or_event_does_not_fit() -> None:
    """Likewise: each member that must be there is taken away once, and gets a value of another
    type once."""
    folder = next(one for one in CASES if one.name.startswith("001-"))
    plan = json.loads(encode(plan_of(workspace_of(folder), folder)))
    event = next(one for one in read_events(STREAMS[0]) if one["type"] == "planned_change")
    outcome = next(one for one in read_lines(LOGS[-1]) if one["kind"] == "outcome")
    strange: Any = [[]]
    for name, document, path in (
        ("plan", plan, ("plan",)),
        ("plan", plan, ("plan", "lineage")),
        ("plan", plan, ("plan", "changes", 0, "action")),
        ("plan", plan, ("plan", "changes", 0, "identity")),
        ("event", event, ("type",)),
        ("event", event, ("change",)),
        ("event", event, ("change", "kafkaform", "findings")),
        ("audit-record", outcome, ("seq",)),
        ("audit-record", outcome, ("body", "outcome")),
        ("audit-record", outcome, ("body", "paths", 0, "path")),
    ):
        validator = make_validator(name)
        validator.validate(document)
        assert not validator.is_valid(change(document, *path, drop=True)), path
        assert not validator.is_valid(change(document, *path, value=strange)), path
