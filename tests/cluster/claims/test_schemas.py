"""What the rules of schemas claim, tried with a real registry and with Avro's own library."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import jsonschema
import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
)

from kafkaform.core.change import Action
from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Depth, Identity
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.plan.build import amend
from kafkaform.provider.contract import Session
from kafkaform_schema_registry.formats.normal_form import inspect_schema
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.registry import NUMBERS, name_listing
from kafkaform_schema_registry.kinds.subject_settings import SUBJECT_CONFIG
from kafkaform_schema_registry.kinds.version import TYPE as VERSION_TYPE
from kafkaform_schema_registry.kinds.version import VERSION, name_version
from kafkaform_schema_registry.provider import PROVIDER
from kafkaform_schema_registry.rules.schemas import DELETED_REFER

from ...kit.schema_registry.java_avro import JavaAvro, run_java_avro
from ...kit.schema_registry.judgement import INSTANCE, judge, list_rules, plan_change
from ...kit.schema_registry.schemas import (
    ID,
    NOTE,
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from ...kit.servers import Client, Registry


@dataclass
class Desk:
    """A registry as a client and as a session of the provider see it. subject: of this test."""

    client: Client
    session: Session
    subject: str

    def register(
        self, text: str, kind: str = "AVRO", subject: str = "", references: Any = ()
    ) -> tuple[int, Any]:
        """What the registry answers to a new version."""
        body = {"schema": text, "schemaType": kind, "references": list(references)}
        return self.client.ask("POST", f"/subjects/{subject or self.subject}/versions", body)

    def set_level(self, level: str) -> None:
        status, _ = self.client.ask("PUT", f"/config/{self.subject}", {"compatibility": level})
        assert status == 200

    def find(self, action: Action, **declared: Value) -> list[str]:
        """The rules of what is found about a change of the subject."""
        block = {"subject": self.subject, "schema": ORDER, **declared}
        change = plan_change(self.session, schema.KIND, action, **block)
        return list_rules(judge(self.session, change))

    def judge_version(self, number: int, state: str | None) -> list[Finding]:
        """What is found about this state of a version; None: it is deleted permanently."""
        identity = Identity(INSTANCE, VERSION, name_version(self.subject, number))
        reading = self.session.read([identity])[identity]
        change = amend(
            identity,
            VERSION,
            reading,
            VERSION_TYPE,
            self.session.facts,
            lambda live: live.with_items({"state": state}) if live and state else None,
        )
        assert change.before is not None
        return judge(self.session, change)


@pytest.fixture
def desk(registry: Registry) -> Iterator[Desk]:
    """With a subject of its own, which goes at the end."""
    client, name = Client(registry.url), f"claims-{uuid4().hex[:8]}"
    session = PROVIDER.open(INSTANCE, FrozenMap(url=registry.url), EMPTY)
    yield Desk(client, session, name)
    session.close()
    client.ask("DELETE", f"/subjects/{name}")


@pytest.fixture(scope="module")
def java_avro(registry: Registry) -> Iterator[JavaAvro]:
    """Avro's library, beside the registry of the run."""
    with run_java_avro() as library:
        yield library


def proto(*fields: str) -> str:
    return f'syntax = "proto3";\nmessage Order {{ {" ".join(fields)} }}\n'


def json_schema(required: list[str], **properties: str) -> str:
    kinds = {name: {"type": kind} for name, kind in properties.items()}
    closed = {"type": "object", "additionalProperties": False}
    return json.dumps({**closed, "required": required, "properties": kinds})


PURCHASE = ORDER.replace('"Order"', '"Purchase"')
ALIASED = json.dumps({**json.loads(PURCHASE), "aliases": ["Order"]})


@pytest.mark.parametrize(
    ("level", "kind", "versions", "refused"),
    [
        ("BACKWARD", "avro", (ORDER, ORDER_WITH_AMOUNT), True),
        ("BACKWARD", "avro", (ORDER_WITH_AMOUNT, ORDER), False),
        ("FORWARD", "avro", (ORDER_WITH_AMOUNT, ORDER), True),
        ("FORWARD", "avro", (ORDER, ORDER_WITH_AMOUNT), False),
        ("FULL", "avro", (ORDER, ORDER_WITH_NOTE), False),
        ("FULL", "avro", (ORDER, ORDER_WITH_AMOUNT), True),
        ("BACKWARD", "avro", (ORDER, record(NOTE), record(NOTE, ID)), True),
        ("BACKWARD", "avro", (ORDER, PURCHASE), True),
        ("BACKWARD", "avro", (ORDER, ALIASED), False),
        (
            "BACKWARD_TRANSITIVE",
            "avro",
            (record(field("x")), record(ID, field("x", default="a")), record(ID, field("x"))),
            True,
        ),
        (
            "BACKWARD_TRANSITIVE",
            "avro",
            (record(NOTE), record(NOTE, field("a", default="")), record(NOTE, field("a"))),
            True,
        ),
        (
            "BACKWARD",
            "avro",
            (record(NOTE), record(NOTE, field("a", default="")), record(NOTE, field("a"))),
            False,
        ),
        ("BACKWARD", "json", (json_schema([], a="string"), json_schema([], a="integer")), True),
        ("BACKWARD", "json", (json_schema(["a"], a="string"), json_schema([], a="string")), False),
        ("BACKWARD", "protobuf", (proto("string a = 1;"), proto("bool a = 1;")), True),
        (
            "BACKWARD",
            "protobuf",
            (proto("string a = 1;"), proto("string a = 1; int32 b = 2;")),
            False,
        ),
    ],
)
def test_levels_refuse_what_the_plan_blocks(
    desk: Desk, level: str, kind: str, versions: tuple[str, ...], refused: bool
) -> None:
    """The registry refuses exactly the versions that have the block, of each format."""
    *older, latest = versions
    for text in older:
        assert desk.register(text, kind.upper())[0] == 200
    desk.set_level(level)
    rules = desk.find(Action.UPDATE, schema=latest, format=kind)
    assert ("schema-incompatible" in rules) is refused, rules
    status, answer = desk.register(latest, kind.upper())
    assert status == (409 if refused else 200), answer


def test_a_lowered_level_takes_what_the_old_one_refuses(desk: Desk) -> None:
    """FULL refuses a field without a default, FORWARD takes it; the change has the rule."""
    desk.register(ORDER)
    desk.set_level("FULL")
    assert desk.register(ORDER_WITH_AMOUNT)[0] == 409
    block = {"subject": desk.subject, "compatibility": "FORWARD"}
    change = plan_change(desk.session, SUBJECT_CONFIG, Action.UPDATE, **block)
    assert list_rules(judge(desk.session, change)) == ["schema-level-lowered"]
    desk.set_level("FORWARD")
    assert desk.register(ORDER_WITH_AMOUNT)[0] == 200


def test_a_reference_to_nothing_is_refused(desk: Desk) -> None:
    """The registry refuses what the plan blocks, and takes it once the version exists."""
    other = f"{desk.subject}-other"
    text = json.dumps({"type": "array", "items": "Order"})
    reference = FrozenMap(name="Order", subject=other, version=1)
    block = {"schema": text, "references": (reference,)}
    assert "schema-reference-missing" in desk.find(Action.CREATE, **block)
    assert desk.register(text, references=[dict(reference)])[0] >= 400
    assert desk.register(ORDER, subject=other)[0] == 200
    assert "schema-reference-missing" not in desk.find(Action.CREATE, **block)
    assert desk.register(text, references=[dict(reference)])[0] == 200


def test_an_older_schema_does_not_become_the_latest(desk: Desk) -> None:
    """The registry takes it and keeps the newer one as the latest; the plan blocks it. Apicurio
    takes another spelling for a new version, so the text is the one that kafkaform registers."""
    text = inspect_schema("avro", ORDER).normal
    first, latest = desk.register(text), f"/subjects/{desk.subject}/versions/latest"
    assert desk.register(ORDER_WITH_NOTE)[0] == 200
    assert "schema-older-again" in desk.find(Action.UPDATE, schema=ORDER)
    assert "schema-older-again" not in desk.find(Action.UPDATE, schema=ORDER_WITH_AMOUNT)
    assert desk.register(text) == first
    assert desk.client.ask("GET", latest)[1]["version"] == 2
    assert desk.client.ask("DELETE", f"/subjects/{desk.subject}/versions/2")[0] == 200
    assert desk.client.ask("GET", latest)[1]["version"] == 1


def test_a_version_has_the_number_that_was_foreseen(desk: Desk) -> None:
    """One behind all that there were, also behind those that were deleted softly."""
    numbers = name_listing(NUMBERS, [desk.subject])

    def foresee() -> int:
        (item,) = desk.session.sweep(numbers, Depth.FULL).items
        return int(item.attributes["next"])

    versions = f"/subjects/{desk.subject}/versions"
    for text, deleted in ((ORDER, ""), (ORDER_WITH_NOTE, "/versions/2"), (ORDER_WITH_AMOUNT, "")):
        foreseen = foresee()
        assert desk.register(text)[0] == 200
        assert desk.client.ask("GET", f"{versions}/latest")[1]["version"] == foreseen
        if deleted:
            assert desk.client.ask("DELETE", f"/subjects/{desk.subject}{deleted}")[0] == 200
    assert desk.client.ask("DELETE", f"/subjects/{desk.subject}")[0] == 200
    assert foresee() == 4
    assert desk.register(ORDER)[0] == 200
    assert desk.client.ask("GET", versions)[1] == [4]


def test_a_subject_that_others_refer_to_is_not_deleted(desk: Desk) -> None:
    """The plan names the subject that refers to it, and the registry refuses the deletion."""
    user = f"{desk.subject}-user"
    desk.register(ORDER)
    reference = {"name": "Order", "subject": desk.subject, "version": 1}
    text = json.dumps({"type": "array", "items": "Order"})
    assert desk.register(text, subject=user, references=[reference])[0] == 200
    change = plan_change(
        desk.session, schema.KIND, Action.DELETE, subject=desk.subject, schema=ORDER
    )
    first = judge(desk.session, change)[0]
    assert (first.rule, first.level) == ("schema-referred", Level.BLOCK)
    assert first.text == f"{user} refers to {desk.subject}"
    assert desk.client.ask("DELETE", f"/subjects/{desk.subject}")[0] >= 400
    # Apicurio counts the references of what is deleted softly.
    other = plan_change(desk.session, schema.KIND, Action.DELETE, subject=user, schema=ORDER)
    first = judge(desk.session, change, other)[0]
    assert (first.rule, first.fix) == ("schema-referred", DELETED_REFER)
    assert desk.client.ask("DELETE", f"/subjects/{user}")[0] == 200
    assert desk.client.ask("DELETE", f"/subjects/{desk.subject}")[0] >= 400
    assert desk.client.ask("DELETE", f"/subjects/{user}?permanent=true")[0] == 200
    assert desk.client.ask("DELETE", f"/subjects/{desk.subject}")[0] == 200


def test_writers_do_not_find_a_deleted_subject(desk: Desk) -> None:
    """A look-up of the schema and of the latest version fails with 404; readers find the id."""
    _, registered = desk.register(ORDER)
    assert desk.find(Action.DELETE) == ["schema-deleted"]
    assert desk.client.ask("DELETE", f"/subjects/{desk.subject}")[0] == 200
    look_up = desk.client.ask("POST", f"/subjects/{desk.subject}", {"schema": ORDER})
    latest = desk.client.ask("GET", f"/subjects/{desk.subject}/versions/latest")
    assert (look_up[0], latest[0]) == (404, 404)
    assert desk.client.ask("GET", f"/schemas/ids/{registered['id']}")[0] == 200


def test_ids_of_a_purged_subject_are_gone(desk: Desk, registry: Registry) -> None:
    """Readers do not get the schema of a record any more."""
    text = record(ID, field(f"only_{desk.subject.replace('-', '_')}"))
    _, registered = desk.register(text)
    session = PROVIDER.open(INSTANCE, FrozenMap(url=registry.url, hard_delete=True), EMPTY)
    change = plan_change(session, schema.KIND, Action.DELETE, subject=desk.subject, schema=ORDER)
    assert list_rules(judge(session, change)) == ["schema-deleted", "schema-purged"]
    session.close()
    for query in ("", "?permanent=true"):
        assert desk.client.ask("DELETE", f"/subjects/{desk.subject}{query}")[0] == 200
    assert desk.client.ask("GET", f"/schemas/ids/{registered['id']}")[0] == 404


def test_a_version_is_deleted_and_restored(desk: Desk) -> None:
    """A look-up of its schema fails then, and its id is found. Registered again, the schema gets
    the number that the plan says, and keeps its id."""
    ids = [desk.register(text)[1]["id"] for text in (ORDER, ORDER_WITH_NOTE)]
    assert list_rules(desk.judge_version(2, "deleted")) == ["schema-version-deleted"]
    versions = f"/subjects/{desk.subject}/versions"
    assert desk.client.ask("DELETE", f"{versions}/2")[0] == 200
    look_up = desk.client.ask("POST", f"/subjects/{desk.subject}", {"schema": ORDER_WITH_NOTE})
    assert look_up[0] == 404
    assert desk.client.ask("GET", f"/schemas/ids/{ids[1]}")[0] == 200
    (note,) = desk.judge_version(2, "registered again")
    assert note.rule == "schema-version-restored"
    assert note.text == f"the schema of version 2 becomes version 3 of {desk.subject}"
    assert desk.register(ORDER_WITH_NOTE)[1]["id"] == ids[1]
    latest = desk.client.ask("GET", f"{versions}/latest")[1]
    assert (latest["version"], latest["id"]) == (3, ids[1])


def test_a_version_is_deleted_permanently(desk: Desk) -> None:
    """Readers do not get the schema of its records any more."""
    desk.register(ORDER)
    text = record(ID, field(f"only_{desk.subject.replace('-', '_')}", default=""))
    id = desk.register(text)[1]["id"]
    rules = ["schema-version-deleted", "schema-version-purged"]
    assert list_rules(desk.judge_version(2, None)) == rules
    for query in ("", "?permanent=true"):
        assert desk.client.ask("DELETE", f"/subjects/{desk.subject}/versions/2{query}")[0] == 200
    assert desk.client.ask("GET", f"/schemas/ids/{id}")[0] == 404


def test_a_version_that_others_refer_to_is_not_deleted(desk: Desk) -> None:
    """The plan names the subject that refers to it, and the registry refuses the deletion."""
    user = f"{desk.subject}-user"
    for text in (ORDER, ORDER_WITH_NOTE):
        desk.register(text)
    reference = {"name": "Order", "subject": desk.subject, "version": 1}
    text = json.dumps({"type": "array", "items": "Order"})
    assert desk.register(text, subject=user, references=[reference])[0] == 200
    first = desk.judge_version(1, "deleted")[0]
    assert (first.rule, first.level) == ("schema-version-referred", Level.BLOCK)
    assert first.text == f"{user} refers to version 1 of {desk.subject}"
    assert list_rules(desk.judge_version(2, "deleted")) == ["schema-version-deleted"]
    versions = f"/subjects/{desk.subject}/versions"
    assert [desk.client.ask("DELETE", f"{versions}/{n}")[0] >= 400 for n in (1, 2)] == [True, False]
    for query in ("", "?permanent=true"):
        assert desk.client.ask("DELETE", f"/subjects/{user}{query}")[0] == 200


def test_a_level_of_a_subject_can_end(desk: Desk) -> None:
    """`schema-config-empty`: without a level of its own, a subject is as before."""
    desk.register(ORDER)
    untouched = desk.client.ask("GET", f"/config/{desk.subject}")
    desk.set_level("FULL")
    assert desk.client.ask("GET", f"/config/{desk.subject}") != untouched
    assert desk.client.ask("DELETE", f"/config/{desk.subject}")[0] == 200
    assert desk.client.ask("GET", f"/config/{desk.subject}") == untouched


def test_a_level_goes_with_its_subject(desk: Desk, registry: Registry) -> None:
    """`schema-level-lost`: after a permanent deletion, a schema that is registered again has the
    registry's own level. Apicurio keeps it in a soft one, which is a note."""
    desk.register(ORDER)
    untouched = desk.client.ask("GET", f"/config/{desk.subject}")
    desk.set_level("FULL")
    level = {"subject": desk.subject, "compatibility": "FULL"}
    session = PROVIDER.open(INSTANCE, FrozenMap(url=registry.url, hard_delete=True), EMPTY)
    for used, expected in ((desk.session, Level.NOTE), (session, Level.CAUTION)):
        stays = plan_change(used, SUBJECT_CONFIG, Action.NOOP, **level)
        deletion = plan_change(used, schema.KIND, Action.DELETE, subject=desk.subject, schema=ORDER)
        findings = judge(used, deletion, stays)
        assert [x.level for x in findings if x.rule == "schema-level-lost"] == [expected]
    session.close()
    assert desk.client.ask("DELETE", f"/subjects/{desk.subject}")[0] == 200
    desk.register(ORDER)
    assert desk.client.ask("GET", f"/config/{desk.subject}") != untouched
    for query in ("", "?permanent=true"):
        assert desk.client.ask("DELETE", f"/subjects/{desk.subject}{query}")[0] == 200
    desk.register(ORDER)
    assert desk.client.ask("GET", f"/config/{desk.subject}") == untouched


def test_apicurio_has_no_modes_and_no_level_none_of_a_subject(desk: Desk) -> None:
    """It refuses questions about modes. A subject that got NONE is like one that never had a
    level."""
    assert desk.client.ask("GET", "/mode")[0] == 404
    assert desk.client.ask("PUT", f"/mode/{desk.subject}", {"mode": "READONLY"})[0] == 404
    desk.register(ORDER)
    untouched = desk.client.ask("GET", f"/config/{desk.subject}")
    desk.set_level("FULL")
    assert desk.client.ask("GET", f"/config/{desk.subject}") != untouched
    desk.set_level("NONE")
    assert desk.client.ask("GET", f"/config/{desk.subject}") == untouched
    for setting, rule in (
        ({"mode": "READONLY"}, "schema-mode-unsupported"),
        ({"compatibility": "NONE"}, "schema-level-none-unsupported"),
    ):
        block = {"subject": desk.subject, **setting}
        change = plan_change(desk.session, SUBJECT_CONFIG, Action.CREATE, **block)
        assert rule in list_rules(judge(desk.session, change))


def test_apicurio_drops_a_data_contract_without_a_word(desk: Desk) -> None:
    """Metadata, rules and settings are accepted and not kept, so the plan blocks them."""
    rules = {"domainRules": [{"name": "check", "kind": "CONDITION", "type": "CEL", "expr": "true"}]}
    body = {"schema": ORDER, "metadata": {"properties": {"owner": "shop"}}, "ruleSet": rules}
    status, _ = desk.client.ask("POST", f"/subjects/{desk.subject}/versions", body)
    assert status == 200
    _, version = desk.client.ask("GET", f"/subjects/{desk.subject}/versions/1")
    assert not {"metadata", "ruleSet"}.intersection(version)
    settings = {"compatibility": "FULL", "alias": "orders", "compatibilityGroup": "major"}
    status, _ = desk.client.ask("PUT", f"/config/{desk.subject}", settings)
    assert status == 200
    _, config = desk.client.ask("GET", f"/config/{desk.subject}")
    assert config == {"compatibilityLevel": "FULL"}
    metadata = FrozenMap(properties=FrozenMap(owner="shop"), tags=None)
    assert "schema-contract-unsupported" in desk.find(Action.UPDATE, metadata=metadata)


@pytest.mark.parametrize(
    "text",
    [
        '"strng"',
        '{"type":"map","values":"lng"}',
        '{"type":"array"}',
        '{"name":"x"}',
        '["int","int"]',
        '["int",["null"]]',
        '{"type":"enum","name":"E"}',
        '{"type":"enum","name":"E","symbols":["A","A"]}',
        '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
        '{"type":"fixed","name":"F"}',
        record(field("a"), field("a")),
        record(field("a-b")),
        record(field("a", "int", default="x")),
        record(field("a", "int", default=5.5)),
        record(field("a", ["null", "string"], default=5)),
        record(field("a", "bytes", default=7)),
        record(field("a", order="up")),
        record(field("a", {"type": "record", "name": "Order", "fields": []})),
        record(field("a", {"type": "array", "items": "int"}, default=["x"])),
        "{",
    ],
)
def test_avro_itself_refuses_what_is_no_schema(java_avro: JavaAvro, text: str) -> None:
    """Avro's library for Java, with which registries parse, refuses each of them."""
    assert inspect_schema("avro", text).faults
    with pytest.raises(ValueError):
        java_avro.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        '"int"',
        "[]",
        '{"type":"record","name":"é","fields":[]}',
        record(field("a", ["null", "string"], default="x")),
        record(field("a", "double", default="NaN")),
        record(field("a", {"type": "enum", "name": "E", "symbols": ["A"]}, default="Z")),
        record(field("next", ["null", "Order"], default=None)),
        record(field("a", {"type": "map", "values": "long"}, default={"x": 1})),
        record(field("a", order="DESCENDING")),
    ],
)
def test_what_avro_takes_is_a_schema(java_avro: JavaAvro, text: str) -> None:
    """No block for what the library takes, unusual as it is."""
    assert not inspect_schema("avro", text).faults
    java_avro.parse(text)


PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS = (None, 0, 1.5, "", "X", True, [], {}, [1], {"a": 1}, 2**40, -1)


def make_type(source: random.Random, depth: int) -> Any:
    """A type that may have a fault: names, symbols and defaults are few and collide."""
    if depth == 0 or source.random() < 0.4:
        return source.choice((*PRIMITIVES, "R", "E", "nope"))
    kinds = {
        "array": lambda: {"items": make_type(source, depth - 1)},
        "map": lambda: {"values": make_type(source, depth - 1)},
        "enum": lambda: {"name": "E", "symbols": source.choices(("X", "Y", "Z", "x-"), k=2)},
        "fixed": lambda: {"name": source.choice("FG"), "size": source.choice((0, 4))},
        "record": lambda: make_record(source, depth - 1),
    }
    if source.random() < 0.3:
        return [make_type(source, depth - 1) for _ in range(source.randint(1, 3))]
    kind = source.choice(tuple(kinds))
    return {"type": kind, **kinds[kind]()}


def make_record(source: random.Random, depth: int) -> dict[str, Any]:
    fields = []
    for _ in range(source.randint(0, 3)):
        item = {"name": source.choice("abcdef"), "type": make_type(source, depth)}
        default = {"default": source.choice(DEFAULTS)} if source.random() < 0.3 else {}
        fields.append({**item, **default})
    return {"type": "record", "name": source.choice(("R", "S", "n.T")), "fields": fields}


def test_no_random_schema_that_avro_takes_is_refused(java_avro: JavaAvro) -> None:
    """Of a thousand, a half is sound; the rule blocks none of these, and nearly all others."""
    source, taken, missed = random.Random(5), 0, []
    for _ in range(1000):
        text = json.dumps(make_record(source, 3))
        faults = inspect_schema("avro", text).faults
        try:
            java_avro.parse(text)
        except ValueError as error:
            missed += [] if faults else [(text, str(error))]
            continue
        taken += 1
        assert not faults, (text, faults)
    assert 100 < taken < 900
    # A default inside of its own type, and a name that is used before its definition.
    assert len(missed) <= 10, missed


def enum(*symbols: str, **more: str) -> str:
    """The schema of a record with a status of these symbols."""
    kind = {"type": "enum", "name": "Status", "symbols": symbols, **more}
    return record(field("status", kind))


STOPS = "stops"
OPEN, SENT = enum("OPEN"), enum("OPEN", "SENT")
TEXT, NUMBER = record(field("amount", "string")), record(field("amount", "int"))


@pytest.mark.parametrize(
    ("written", "values", "wanted", "result"),
    [
        pytest.param(ORDER, {"id": 3}, ORDER_WITH_NOTE, "note", id="field-added"),
        pytest.param(
            ORDER_WITH_NOTE, {"id": 3, "note": {"string": "x"}}, ORDER, "id", id="compatible"
        ),
        pytest.param(ORDER, {"id": 3}, ORDER_WITH_AMOUNT, STOPS, id="field-demanded"),
        pytest.param(ORDER_WITH_AMOUNT, {"id": 3, "amount": 7}, ORDER, "id", id="update-order"),
        pytest.param(NUMBER, {"amount": 7}, TEXT, STOPS, id="type-changed"),
        pytest.param(
            NUMBER, {"amount": 7}, record(field("amount", "long")), "7", id="type-widened"
        ),
        pytest.param(SENT, {"status": "SENT"}, OPEN, STOPS, id="symbol-added"),
        pytest.param(
            SENT, {"status": "SENT"}, enum("OPEN", default="OPEN"), "OPEN", id="symbol-default"
        ),
        # Only levels compare the names of records; this library does not.
        pytest.param(ORDER, {"id": 3}, PURCHASE, "id", id="name-changed"),
        pytest.param(
            ORDER,
            {"id": 3},
            json.dumps({**json.loads(ORDER), "doc": "An order."}),
            "id",
            id="remark",
        ),
    ],
)
def test_avro_readers_get_what_the_rules_say(
    java_avro: JavaAvro, written: str, values: dict[str, Any], wanted: str, result: str
) -> None:
    """Each kind of difference, as Avro's library resolves it: a field that is removed is what an
    added one is in the other direction, and so is a symbol."""
    data = java_avro.write(written, **values)
    assert java_avro.read(data, written, written)
    if result == STOPS:
        with pytest.raises(ValueError, match=r"\w"):
            java_avro.read(data, written, wanted)
    else:
        assert result in java_avro.read(data, written, wanted)


def test_avro_readers_stop_at_what_they_cannot_resolve(java_avro: JavaAvro, desk: Desk) -> None:
    """At level NONE the registry takes both schemas. A reader with the new one fails at an older
    record; one with the old schema reads a newer record."""
    assert desk.register(ORDER)[0] == 200
    if desk.client.ask("GET", "/config")[1]["compatibilityLevel"] == "NONE":
        assert "schema-readers-stop" in desk.find(Action.UPDATE, schema=ORDER_WITH_AMOUNT)
        assert desk.register(ORDER_WITH_AMOUNT)[0] == 200
    old = java_avro.write(ORDER, id=3)
    assert "3" in java_avro.read(old, ORDER, ORDER)
    with pytest.raises(ValueError, match="missing required field amount"):
        java_avro.read(old, ORDER, ORDER_WITH_AMOUNT)
    new = java_avro.write(ORDER_WITH_AMOUNT, id=4, amount=7)
    assert "4" in java_avro.read(new, ORDER_WITH_AMOUNT, ORDER)


def test_readers_of_another_format_stop(java_avro: JavaAvro, desk: Desk) -> None:
    """`schema-format-changed`: neither format's reader reads a record of the other one."""
    desk.register(ORDER)
    desk.set_level("NONE")
    text = json_schema(["id"], id="integer")
    assert "schema-format-changed" in desk.find(Action.UPDATE, schema=text, format="json")
    assert desk.register(text, "JSON")[0] == 200
    old, new = java_avro.write(ORDER, id=3), b'{"id": 3}'
    assert "3" in java_avro.read(old, ORDER, ORDER)
    assert "3" not in java_avro.read(new, ORDER, ORDER)
    with pytest.raises(json.JSONDecodeError):
        json.loads(old)


def make_message(name: str) -> Any:
    """A message of protobuf with one text, which has the number 1 and this name."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", syntax="proto3")
    text = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
    file.message_type.add(name="Order").field.add(name=name, number=1, type=text)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))()


def test_a_renamed_field_of_protobuf_is_read_under_its_new_name(desk: Desk) -> None:
    """`schema-field-renamed`: protobuf's own library reads the older record; JSON has the name."""
    desk.register(proto("string client = 1;"), "PROTOBUF")
    renamed = proto("string customer = 1;")
    rules = desk.find(Action.UPDATE, schema=renamed, format="protobuf")
    assert "schema-field-renamed" in rules
    old, new = make_message("client"), make_message("customer")
    old.client = "zoe"
    new.ParseFromString(old.SerializeToString())
    assert new.customer == "zoe"
    text = json_format.MessageToJson(old)
    with pytest.raises(json_format.ParseError):
        json_format.Parse(text, make_message("customer"))


def test_a_reader_that_validates_refuses_older_records(desk: Desk) -> None:
    """`schema-values-limited`: what an open JSON schema allowed, a closed one does not."""
    closed = json_schema([], id="integer")
    opened = json.dumps({**json.loads(closed), "additionalProperties": True})
    desk.register(opened, "JSON")
    assert "schema-values-limited" in desk.find(Action.UPDATE, schema=closed, format="json")
    older = {"id": 3, "note": "x"}
    jsonschema.validate(older, json.loads(opened))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(older, json.loads(closed))
