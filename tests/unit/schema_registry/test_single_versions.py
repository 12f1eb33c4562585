"""Single versions are deleted and restored by `alter schema`, with a plan like any other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.kinds.schema import KIND
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.http.server import Request
from ...kit.schema_registry.schemas import (
    ORDER,
    ORDER_WITH_AMOUNT,
    ORDER_WITH_NOTE,
    field,
    record,
)
from .conftest import Folder, open_desk

SUBJECT = "orders-value"
TEXTS = (ORDER, ORDER_WITH_NOTE, record(field("id", "long"), field("n", "int", default=1)))


def register(registry: SimulatedRegistry, *texts: str, subject: str = SUBJECT) -> None:
    for text in texts:
        body = {"subject": subject, "format": "avro", "schema": text, "references": ()}
        assert registry.answer(requests.register(body)).succeeded


def list_states(registry: SimulatedRegistry) -> list[tuple[int, bool, int]]:
    """Number, whether it is deleted, and id of each version."""
    versions = registry.subjects.list_versions(SUBJECT, deleted=True)
    return [(stored.number, stored.deleted, stored.id) for stored in versions]


def alter(folder: Folder, *arguments: str, code: int = 0) -> str:
    return folder.run("alter", "schema", SUBJECT, *arguments, "--auto-approve", code=code)


@pytest.fixture
def orders(folder: Folder) -> Folder:
    """A folder without a block, and a subject with three versions."""
    folder.write("")
    register(folder.registry, *TEXTS)
    return folder


def test_a_version_is_deleted_and_restored(orders: Folder) -> None:
    """Softly, and then as the newest version with its id, which the plan foresees. Each is done
    once: again, there is nothing to do."""
    said = alter(orders, "--delete-version", "2")
    assert 'state = "registered" → "deleted"' in said
    assert "writers that look up the schema of version 2 do not find it" in said
    assert "Deleted softly: 2." in said
    assert list_states(orders.registry) == [(1, False, 1), (2, True, 2), (3, False, 3)]
    assert "1 destroyed" not in alter(orders, "--delete-version", "2")
    said = alter(orders, "--restore-version", "2")
    assert "the schema of version 2 becomes version 4 of orders-value" in said
    states = [(1, False, 1), (2, True, 2), (3, False, 3), (4, False, 2)]
    assert list_states(orders.registry) == states
    alter(orders, "--restore-version", "2")
    assert list_states(orders.registry) == states
    assert "No changes" in orders.run("plan")


def test_versions_are_deleted_permanently(orders: Folder) -> None:
    """Several at once, each softly first. It is data loss only if no version keeps the id."""
    alter(orders, "--delete-version", "2")
    alter(orders, "--restore-version", "2")
    said = alter(orders, "--delete-version", "2", "--permanent")
    assert "version 4 of orders-value still has its id 2" in said and "data loss" not in said
    said = alter(orders, "--delete-version", "3", "--delete-version", "1", "--permanent")
    assert "Dangers (2)" in said and "records with the id 3 cannot be read" in said
    assert list_states(orders.registry) == [(4, False, 2)]


def test_the_only_version_is_deleted(folder: Folder) -> None:
    """Then nothing can be described any more, which is no failure of the command."""
    folder.write("")
    register(folder.registry, ORDER)
    for sentence in ("Apply complete: 0 added, 1 changed", "There is nothing to change."):
        said = alter(folder, "--delete-version", "1")
        assert sentence in said
        assert "The result cannot be described: the subject orders-value is deleted softly" in said
    assert list_states(folder.registry) == [(1, True, 1)]


def test_a_whole_subject_is_brought_back(orders: Folder) -> None:
    """`explain schema` says how, and the block that declares it has nothing to do then."""
    orders.registry.answer(requests.delete_subject(SUBJECT, permanent=False))
    said = orders.run("explain", "schema", SUBJECT, code=1)
    assert "deleted softly, with version 1, 2, 3" in said
    assert f"alter schema {SUBJECT} --restore-version 3" in said
    alter(orders, "--restore-version", "3")
    block = 'resource "schema_registry_schema" "o" {\n  subject = "%s"\n  schema = %s\n%s}\n'
    adopt = "  lifecycle {\n    adopt = true\n  }\n"
    orders.write(block % (SUBJECT, json.dumps(TEXTS[2]), adopt))
    orders.run("apply", "-auto-approve")
    assert list_states(orders.registry)[-1] == (4, False, 3)


def test_what_others_refer_to_is_not_deleted(orders: Folder) -> None:
    """The plan names them, and nothing is sent."""
    reference = {"name": "Order", "subject": SUBJECT, "version": 2}
    body = {"subject": "carts", "format": "avro", "references": (reference,)}
    text = json.dumps({"type": "array", "items": "Order"})
    assert orders.registry.answer(requests.register({**body, "schema": text})).succeeded
    for flags in ([], ["--permanent"]):
        said = alter(orders, "--delete-version", "2", *flags, code=8)
        assert "carts refers to version 2 of orders-value" in said
    assert not any(deleted for _, deleted, _ in list_states(orders.registry))
    alter(orders, "--delete-version", "1")


def test_references_of_deleted_schemas_are_a_caution(orders: Folder) -> None:
    """Apicurio tells their ids and not their subjects, and deletes the version all the same."""
    orders.registry.apicurio = True
    reference = {"name": "Order", "subject": SUBJECT, "version": 2}
    body = {"subject": "carts", "format": "avro", "references": (reference,)}
    text = json.dumps({"type": "array", "items": "Order"})
    assert orders.registry.answer(requests.register({**body, "schema": text})).succeeded
    assert orders.registry.answer(requests.delete_subject("carts", permanent=False)).succeeded
    said = alter(orders, "--delete-version", "2")
    assert "1 schema of other subjects refers to version 2 of orders-value" in said
    assert list_states(orders.registry)[1] == (2, True, 2)


def test_a_schema_that_does_not_fit_is_not_restored(orders: Folder) -> None:
    """The registry's own check is part of the dry run."""
    orders.registry.levels[SUBJECT] = "NONE"
    register(orders.registry, ORDER_WITH_AMOUNT)
    alter(orders, "--delete-version", "4")
    orders.registry.levels[SUBJECT] = "BACKWARD"
    before = list_states(orders.registry)
    assert "is not compatible" in alter(orders, "--restore-version", "4", code=1)
    assert list_states(orders.registry) == before


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ([], "needs --delete-version or --restore-version"),
        (["--delete-version", "1", "--restore-version", "2"], "needs --delete-version or"),
        (["--restore-version", "1", "--permanent"], "--permanent goes with --delete-version"),
        (["--delete-version", "latest"], "'latest' is no version"),
        (["--delete-version", "0"], "'0' is no version"),
        (["--delete-version", "9"], "there is no version 9 of orders-value"),
        (["--restore-version", "9"], "there is no version 9 of orders-value"),
    ],
)
def test_flags_that_mean_nothing(orders: Folder, flags: list[str], text: str) -> None:
    """They are refused with what to type."""
    said = alter(orders, *flags, code=1)
    assert (
        text in said
        and "kafkaform explain schema" in said
        or "numbers from 1" in said
        or ("Leave it out" in said)
    )


@pytest.mark.parametrize("executed", [True, False])
def test_a_timeout_of_the_registry_is_read(orders: Folder, *, executed: bool) -> None:
    """50002 says nothing about the write: what became of it is read, and it is not sent twice."""
    answer = orders.served.answers

    def time_out(request: Request) -> tuple[int, Any]:
        writes = request.method == "DELETE" or request.path == f"/subjects/{SUBJECT}/versions"
        if request.method == "GET" or not writes:
            return answer(request)
        if executed:
            answer(request)
        return 500, {"error_code": 50002, "message": "Operation timed out"}

    block = 'provider "schema_registry" {\n  url = "%s"\n  operation_timeout = 1\n}\n'
    (orders.path / "main.kf.hcl").write_text(block % orders.served.url)
    for flags in (["--delete-version", "2"], ["--restore-version", "2"]):
        orders.served.answers = time_out
        alter(orders, *flags, code=0 if executed else 5)
        orders.served.answers = answer
        alter(orders, *flags)
    assert list_states(orders.registry)[1:] == [(2, True, 2), (3, False, 3), (4, False, 2)]


@pytest.mark.parametrize("hard", [False, True])
def test_a_subject_without_its_newest_version_can_be_deleted(
    apicurio: SimulatedRegistry, *, hard: bool
) -> None:
    """Apicurio calls such a subject deleted, and refuses: the others go one by one."""
    register(apicurio, *TEXTS)
    apicurio.answer(requests.delete_version(SUBJECT, 3, permanent=False))
    assert apicurio.answer(requests.delete_subject(SUBJECT, permanent=False)).status == 404
    desk = open_desk(apicurio, hard_delete=hard)
    _, steps = desk.plan(KIND, Action.DELETE, subject=SUBJECT, schema=TEXTS[1])
    assert [outcome.status for outcome in desk.send(steps)] == [OutcomeStatus.APPLIED] * len(steps)
    assert not apicurio.subjects.list_versions(SUBJECT)
    assert bool(apicurio.subjects.list_versions(SUBJECT, deleted=True)) is not hard
