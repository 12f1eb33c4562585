"""A registry that lies, breaks off or is none: nothing of it is believed, and nothing raises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core.errors import ConnectError, KafkaformError
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.subject_settings import (
    REGISTRY_CONFIG,
    REGISTRY_KEY,
    SUBJECT_CONFIG,
)
from kafkaform_schema_registry.session import RegistrySession, identify_product

from ...kit.quick import examples
from ...kit.schema_registry.schemas import ORDER
from .conftest import INSTANCE

KINDS = (schema.KIND, SUBJECT_CONFIG, REGISTRY_CONFIG)
FACTS = Facts("hostile", nodes=("registry",), values=FrozenMap(modes=True, subject_none=True))
VERSION: dict[str, Any] = {"subject": "a", "id": 1, "version": 1, "schema": ORDER}


class Liar:
    """Gives the same answer to every call."""

    def __init__(self, answer: HttpAnswer | Fault) -> None:
        self._answer = answer

    def ask_all(self, calls: list[Call]) -> list[HttpAnswer | Fault]:
        return [self._answer for _ in calls]

    def prove(self) -> None:
        pass

    def close(self) -> None:
        pass


def open_liar(status: int, body: Any) -> RegistrySession:
    return RegistrySession(INSTANCE, Liar(HttpAnswer(status, body)), FACTS)


def read(session: RegistrySession, kind: str, key: str = "a") -> Any:
    identity = Identity(
        INSTANCE,
        kind,
        REGISTRY_KEY if kind == REGISTRY_CONFIG else key,
    )
    return session.read([identity])[identity]


def list_bad_versions() -> Iterator[dict[str, Any]]:
    """Versions of which one member is wrong."""
    for name, values in {
        "subject": ["b", 1],
        "id": [None, "1", True, -1, 2**31, 1.5],
        "version": [None, "latest", False, 2**40],
        "schema": [None, 1, {}],
        "schemaType": [1, "avro", "A" * 100, ""],
        "references": [{}, "x", [1], [{"name": "n"}], [VERSION] * 1001],
        "metadata": [1, [], {"properties": []}, {"properties": {"a": 1}}, {"tags": {"a": "b"}}],
        "ruleSet": [1, [], {"domainRules": {}}, {"domainRules": [{}]}, {"domainRules": [1]}],
    }.items():
        for value in values:
            yield {**VERSION, name: value}


@pytest.mark.parametrize("body", [*list_bad_versions()], ids=lambda body: json.dumps(body)[:60])
def test_a_version_with_another_form_is_not_believed(body: dict[str, Any]) -> None:
    """Neither an object nor an absence follows from it."""
    found = read(open_liar(200, body), schema.KIND)
    assert isinstance(found, Failed)
    assert found.fault.code == "BAD_ANSWER" and found.fault.advice


@pytest.mark.parametrize("kind", [SUBJECT_CONFIG, REGISTRY_CONFIG])
@pytest.mark.parametrize(
    "setting", [{"alias": 1}, {"defaultMetadata": "x"}, {"overrideRuleSet": {"domainRules": 1}}]
)
def test_settings_with_another_form_are_not_believed(kind: str, setting: dict[str, Any]) -> None:
    """Nothing of them counts, not even the level beside them."""
    body = {"compatibilityLevel": "FULL", "mode": "READWRITE", **setting}
    found = read(open_liar(200, body), kind)
    assert isinstance(found, Failed) and found.fault.code == "BAD_ANSWER"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"mode": "x", "compatibilityLevel": 1}])
def test_an_answer_without_meaning_is_a_failure(kind: str, body: Any) -> None:
    """Of every kind, for reads and listings."""
    session = open_liar(200, body)
    assert isinstance(read(session, kind), Failed)
    if body != []:  # no subjects
        for depth in Depth:
            assert session.sweep(kind, depth).coverage.kind is CoverageKind.FAILED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, None),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
        (404, {"error_code": 0}),
        (404, {"error_code": "40401"}),
        (410, {"error_code": 40401}),
        (302, None),
        (500, {"error_code": 50001}),
        (503, None),
        (401, {"error_code": 401}),
    ],
)
def test_only_the_registrys_own_code_proves_an_absence(kind: str, status: int, body: Any) -> None:
    """A proxy's 404 is none of them, and a listing that fails is not empty."""
    session = open_liar(status, body)
    assert isinstance(read(session, kind), Failed)
    sweep = session.sweep(kind, Depth.NAMES)
    assert (sweep.coverage.kind, sweep.items) == (CoverageKind.FAILED, ())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_forbidden_is_hidden(kind: str) -> None:
    """And never absent; the missing right is named."""
    found = read(open_liar(403, None), kind)
    assert isinstance(found, Hidden) and found.right


def test_names_that_are_no_names_are_left_out_and_said_so() -> None:
    """Paths, control characters and endless names are not asked for."""
    names = ["a", "..", ".", "", "x\n", "n" * 5000, "b/../c", "a"]
    sweep = open_liar(200, names).sweep(schema.KIND, Depth.NAMES)
    assert [item.identity.key for item in sweep.items] == ["a", "b/../c"]
    assert sweep.coverage.kind is CoverageKind.VISIBLE_ONLY


@pytest.mark.parametrize(
    ("facts", "number", "kind"),
    [
        (FrozenMap(), 3, CoverageKind.COMPLETE),
        (FrozenMap(login=True), 3, CoverageKind.VISIBLE_ONLY),
        (FrozenMap(listing_limit=3), 3, CoverageKind.VISIBLE_ONLY),
        (FrozenMap(listing_limit=3), 2, CoverageKind.COMPLETE),
    ],
)
def test_a_listing_that_can_be_cut_is_not_complete(
    facts: FrozenMap, number: int, kind: CoverageKind
) -> None:
    """With a login a registry may leave out what the user must not see, and Apicurio ends after a
    thousand."""
    names = [f"s{index}" for index in range(number)]
    session = RegistrySession(INSTANCE, Liar(HttpAnswer(200, names)), Facts("x", values=facts))
    assert session.sweep(schema.KIND, Depth.NAMES).coverage.kind is kind


def test_a_format_that_nobody_knows_is_left_alone() -> None:
    """It is there, and it is not ours to judge."""
    found = read(open_liar(200, {**VERSION, "schemaType": "XSD"}), schema.KIND)
    assert isinstance(found, Failed) and found.fault.code == "UNKNOWN_FORMAT"


def test_a_damaged_schema_is_shown_as_it_is() -> None:
    """What the registry has is what is compared, even if it is no schema."""
    found = read(open_liar(200, {**VERSION, "schema": " {\x1b[31m "}), schema.KIND)
    assert isinstance(found, Observed) and found.attributes["schema"] == " {\x1b[31m"


WORDS = st.sampled_from(
    ["subject", "version", "id", "schema", "schemaType", "references", "mode", "is_compatible"]
    + ["compatibilityLevel", "error_code", "message", "messages", "reason"]
    + ["metadata", "ruleSet", "properties", "tags", "sensitive", "domainRules", "name", "params"]
    + ["alias", "normalize", "defaultMetadata", "overrideRuleSet"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from([200, 204, 400, 403, 404, 409, 422, 500]), JSON, st.sampled_from(KINDS))
def test_no_answer_raises(status: int, body: Any, kind: str) -> None:
    """Whatever comes: each id gets a reading, and a listing says how far it can be trusted."""
    session = open_liar(status, body)
    assert isinstance(read(session, kind), Observed | Absent | Hidden | Failed)
    assert session.sweep(kind, Depth.FULL).coverage.kind in CoverageKind
    for data, arguments in (
        (schema.KIND, FrozenMap(subject="a", version=1)),
        ("schema_registry_schemas", FrozenMap(prefix=None)),
    ):
        try:
            session.query(data, arguments)
        except KafkaformError as error:
            assert error.advice


# ── which registry answers ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, None), (200, {}), (200, []), (404, None), (401, {}), (500, {}), (302, None)],
)
def test_what_is_no_registry_is_refused(status: int, body: Any) -> None:
    """With the address and what to check."""
    with pytest.raises(ConnectError, match="http://r") as caught:
        identify_product(Liar(HttpAnswer(status, body)), "http://r")
    assert caught.value.advice
