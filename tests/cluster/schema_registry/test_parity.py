"""The simulated Apicurio answers the same calls as the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import Call, HttpAnswer, read_error_code
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.schema_registry.corpus import SOUND, TAKEN, UNKNOWN, WRONG, Case
from ...kit.schema_registry.schemas import (
    NOTE,
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from ...kit.schema_registry.systems import Door

Ask = Callable[[Call], HttpAnswer]
TEXTS = ("message", "reason", "messages", "id")
"""Members of an answer that every registry words or counts for itself."""


def send(subject: str, text: str, kind: str = "avro", *references: Any) -> FrozenMap:
    return FrozenMap(subject=subject, format=kind, schema=text, references=references)


def versions(name: str) -> Iterator[Call]:
    """A subject grows, and what does not fit is refused."""
    yield requests.list_versions(name)
    yield requests.read_version(name, None)
    yield requests.look_up(send(name, ORDER))
    yield requests.check_all(send(name, ORDER))
    yield requests.check_latest(send(name, ORDER))
    yield requests.register(send(name, ORDER))
    yield requests.register(send(name, ORDER))
    yield requests.read_version(name, None)
    yield requests.read_version(name, 1)
    yield requests.read_version(name, 2)
    yield requests.look_up(send(name, ORDER))
    yield requests.look_up(send(name, ORDER.replace(" ", "")))
    yield requests.put_setting("config", name, {"compatibility": "BACKWARD"})
    yield requests.check_all(send(name, ORDER_WITH_NOTE))
    yield requests.check_all(send(name, ORDER_WITH_AMOUNT))
    yield requests.check_latest(send(name, ORDER_WITH_AMOUNT))
    yield requests.check_all(send(name, "{"))
    yield requests.register(send(name, ORDER_WITH_AMOUNT))
    yield requests.register(send(name, "{"))
    yield requests.register(send(name, ORDER_WITH_NOTE))
    yield requests.register(send(name, ORDER))
    yield requests.read_version(name, None)
    yield requests.list_versions(name)


def levels(name: str) -> Iterator[Call]:
    """Levels of a subject that does not exist, exists, and is deleted."""
    yield requests.read_setting("config", name)
    yield requests.put_setting("config", name, {"compatibility": "FULL"})
    yield requests.read_setting("config", name)
    yield requests.delete_setting("config", name)
    yield requests.read_setting("config", name)
    yield requests.put_setting("config", name, {"compatibility": "NONE"})
    yield requests.put_setting("config", name, {"compatibility": "FULL"})
    yield requests.register(send(name, ORDER))
    yield requests.check_all(send(name, ORDER_WITH_AMOUNT))
    yield requests.read_setting("config", name)
    yield requests.read_setting("config", name)
    yield requests.put_setting("config", name, {"compatibility": "NONE"})
    yield requests.read_setting("config", name)
    yield requests.put_setting("config", name, {"compatibility": "UPWARD"})
    yield requests.put_setting("config", name, {"compatibility": "FORWARD_TRANSITIVE"})
    yield requests.delete_setting("config", name)
    yield requests.read_setting("config", name)
    yield requests.put_setting("config", name, {"compatibility": "FULL"})
    yield requests.delete_subject(name, permanent=False)
    yield requests.read_setting("config", name)
    yield requests.delete_subject(name, permanent=True)
    yield requests.read_setting("config", name)
    yield requests.read_setting("mode", None)
    yield requests.read_setting("mode", name)
    yield requests.put_setting("mode", name, {"mode": "READONLY"})
    yield requests.IDENTIFY


def deletions(name: str) -> Iterator[Call]:
    """Softly, permanently, again, and what others refer to."""
    other, reference = f"{name} 2", {"name": "Order", "subject": name, "version": 1}
    yield requests.delete_subject(name, permanent=False)
    yield requests.delete_subject(name, permanent=True)
    yield requests.register(send(name, ORDER))
    yield requests.delete_subject(name, permanent=True)
    yield requests.register(
        send(other, record(field("o", "Order"), name="Cart"), "avro", reference)
    )
    yield requests.read_version(other, None)
    yield requests.put_setting("config", other, {"compatibility": "BACKWARD"})
    yield requests.check_all(
        send(other, record(field("o", "Order"), NOTE, name="Cart"), "avro", reference)
    )
    yield requests.list_versions(name, deleted=True)
    yield requests.delete_subject(name, permanent=False)
    yield requests.delete_subject(other, permanent=False)
    yield requests.delete_subject(name, permanent=False)
    yield requests.delete_subject(other, permanent=True)
    yield requests.delete_subject(name, permanent=False)
    yield requests.delete_subject(name, permanent=False)
    yield requests.read_version(name, None)
    yield requests.list_versions(name)
    yield requests.list_versions(name, deleted=True)
    yield requests.look_up(send(name, ORDER))
    yield requests.register(send(name, ORDER_WITH_AMOUNT))
    yield requests.list_versions(name)
    yield requests.delete_subject(name, permanent=False)
    yield requests.delete_subject(name, permanent=True)
    yield requests.register(send(name, ORDER))
    yield requests.list_versions(name)
    nowhere = {"name": "Order", "subject": f"{name} nowhere", "version": 1}
    yield requests.register(send(other, record(field("o", "Order"), name="Cart"), "avro", nowhere))


def single_versions(name: str) -> Iterator[Call]:
    """Versions are deleted one by one, softly and permanently, and registered again."""
    other, reference = f"{name} 2", {"name": "Order", "subject": name, "version": 1}
    for text in (ORDER, ORDER_WITH_NOTE, ORDER_WITH_AMOUNT):
        yield requests.register(send(name, text))
    yield requests.register(
        send(other, record(field("o", "Order"), name="Cart"), "avro", reference)
    )
    yield requests.delete_version(name, 1, permanent=False)
    yield requests.delete_version(name, 2, permanent=True)
    yield requests.delete_version(name, 2, permanent=False)
    yield requests.delete_version(name, 2, permanent=False)
    yield requests.read_version(name, 2)
    yield requests.read_version(name, 2, deleted=True)
    yield requests.list_versions(name)
    yield requests.list_versions(name, deleted=True)
    yield requests.look_up(send(name, ORDER_WITH_NOTE))
    yield requests.register(send(name, ORDER_WITH_NOTE))
    yield requests.look_up(send(name, ORDER_WITH_NOTE))
    yield requests.list_versions(name)
    yield requests.delete_version(name, 2, permanent=True)
    yield requests.read_version(name, 2, deleted=True)
    yield requests.delete_version(name, 9, permanent=False)
    yield requests.delete_version(f"{name} nowhere", 9, permanent=False)
    yield requests.delete_subject(other, permanent=False)
    yield requests.delete_version(name, 1, permanent=False)
    yield requests.delete_subject(other, permanent=True)
    yield requests.delete_version(name, 4, permanent=False)
    yield requests.delete_subject(name, permanent=False)
    yield requests.list_versions(name)
    yield requests.delete_subject(name, permanent=True)
    yield requests.register(send(name, ORDER))
    yield requests.delete_version(name, 1, permanent=False)
    yield requests.read_version(name, None)
    yield requests.list_versions(name)
    yield requests.list_versions(name, deleted=True)


def formats(name: str) -> Iterator[Call]:
    """Other formats, and names that need quoting."""
    for kind, text in (
        ("json", '{"type": "object", "properties": {"a": {"type": "string"}}}'),
        ("protobuf", 'syntax = "proto3"; message M { string a = 1; }'),
    ):
        subject = f"{name}/{kind}?#é%"
        yield requests.register(send(subject, text, kind))
        yield requests.read_version(subject, None)
        yield requests.register(send(subject, "{", kind))


def reduce(answer: HttpAnswer) -> Any:
    """What a client decides by."""
    if not answer.succeeded:
        # Apicurio answers some refusals with a text that is no JSON.
        return answer.status, None if answer.status == 400 else read_error_code(answer)
    body = answer.body
    if isinstance(body, dict):
        return answer.status, {key: value for key, value in body.items() if key not in TEXTS}
    return answer.status, body


@pytest.mark.parametrize("script", [versions, levels, deletions, single_versions, formats])
def test_both_answer_alike(script: Callable[[str], Iterator[Call]], door: Door) -> None:
    """Status, code and body, call by call."""
    simulated = SimulatedRegistry(apicurio=True)
    name = f"parity {uuid4().hex[:8]}"
    for number, call in enumerate(script(name)):
        real = door.ask(call)
        assert isinstance(real, HttpAnswer)
        assert reduce(real) == reduce(simulated.answer(call)), (number, str(call), real)


def test_another_spelling_of_a_schema_is_none_for_us(door: Door) -> None:
    """The registry calls it another version, and kafkaform does not send it."""
    name = f"parity {uuid4().hex[:8]}"
    door.register(name, ORDER)
    assert door.register(name, ORDER.replace(" ", "")) > 0
    versions_of = door.write(requests.list_versions(name)).body
    assert versions_of == [1, 2]


@pytest.mark.parametrize("case", [*WRONG, *SOUND])
def test_both_judge_schemas_alike(case: Case, door: Door) -> None:
    """Each schema of the corpus, which kafkaform and the simulated registry judge, too: the real
    one refuses what they refuse, but for what it is known to take, and takes what they take, but
    for what it cannot tell the format of."""
    kind, text = case
    answer = door.ask(requests.register(send(f"corpus {uuid4().hex[:8]}", text, kind)))
    assert isinstance(answer, HttpAnswer)
    assert answer.succeeded is (case in TAKEN or (case in SOUND and case not in UNKNOWN)), answer
