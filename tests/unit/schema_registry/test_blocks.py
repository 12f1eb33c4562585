"""What blocks mean: names of subjects, faults of schemas, the provider block, test files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform_schema_registry.kinds.subject_settings import check_subject, find_topic, name_subject
from kafkaform_schema_registry.session import name_place

from ...kit.http.server import Request
from ...kit.schema_registry.schemas import record
from ...kit.schema_registry.server import read_call
from .conftest import Folder

FULL_NAME = '{"type":"record","name":"Order","namespace":"shop","fields":[]}'


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ({"subject": "any name"}, "any name"),
        ({"topic": "orders"}, "orders-value"),
        ({"topic": "orders", "part": "key"}, "orders-key"),
        ({"strategy": "record"}, "shop.Order"),
        ({"topic": "orders", "strategy": "topic-record"}, "orders-shop.Order"),
    ],
)
def test_a_subject_is_named_as_clients_name_it(given: dict[str, str], subject: str) -> None:
    """By the three strategies of serializers."""
    block = FrozenMap({"format": "avro", "schema": FULL_NAME, **given})
    assert name_subject(block) == subject


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "set subject, or topic"),
        ({"strategy": "topic-record"}, "set subject, or topic"),
        ({"strategy": "record", "schema": '"int"'}, "has no name"),
        ({"subject": ""}, "needs a name"),
        ({"subject": ".."}, "is no name"),
        ({"subject": "a\nb"}, "control character"),
        ({"subject": "a" * 1001}, "at most 1,000"),
    ],
)
def test_what_names_no_subject_is_refused(given: dict[str, str], why: str) -> None:
    """With what is missing or wrong."""
    with pytest.raises(ValueError, match=why):
        name_subject(FrozenMap({"format": "avro", "schema": FULL_NAME, **given}))


def test_a_subject_is_an_import_id_of_itself() -> None:
    """Also with blanks, slashes and a context."""
    for name in ("a b", "a/b", ":.team:orders-value", "é?#"):
        assert check_subject(name) == name


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-value", "orders"),
        ("my-orders-key", "my-orders"),
        ("orders-shop.Order", "orders"),
        ("shop.Order", None),
        ("-value", None),
        ("value", None),
        ("orders", None),
    ],
)
def test_the_topic_of_a_subject(subject: str, topic: str | None) -> None:
    """As far as its name tells, whatever block it came from."""
    assert find_topic({"subject": subject, "format": "avro", "schema": FULL_NAME}) == topic
    assert find_topic({"subject": "orders", "format": "avro", "schema": "{"}) is None


def test_references_are_told_apart(folder: Folder) -> None:
    """A name can be used once, and versions begin at 1."""
    reference = '{ name = "A", subject = "a", version = %s }'
    folder.write(
        'resource "schema_registry_schema" "x" {\n  subject = "x"\n  schema = jsonencode("int")\n'
        f"  references = [{reference % 1}, {reference % 0}]\n}}\n"
    )
    said = folder.run("validate", code=1)
    assert "two references are called 'A'" in said
    assert "version 0 of a is no version" in said


def test_a_misspelt_field_of_a_reference_is_refused(folder: Folder) -> None:
    """It would be left out without a word, and the reference would follow."""
    folder.write(
        'resource "schema_registry_schema" "x" {\n  subject = "x"\n  schema = jsonencode("int")\n'
        '  references = [{ name = "A", subject = "a", versoin = 2 }]\n}\n'
    )
    said = folder.run("validate", code=1)
    assert 'there is no field "versoin" here' in said and 'Did you mean "version"?' in said


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://Registry:8081", "registry:8081"),
        ("https://registry/", "registry:443"),
        ("http://r:8080/apis/ccompat/v7", "r:8080/apis/ccompat/v7"),
    ],
)
def test_a_registry_without_an_id_is_its_address(url: str, place: str) -> None:
    """Host, port and path, whatever the protocol."""
    assert name_place(url) == place


def test_the_provider_block_is_checked(folder: Folder) -> None:
    """A login in the clear, and what excludes each other."""
    (folder.path / "main.kf.hcl").write_text(
        'provider "schema_registry" {\n  url = "http://registry:8081"\n  username = "ci"\n'
        '  password = secret_env("X")\n}\n'
    )
    assert "would get the login in the clear" in folder.run("validate", code=1)


HEADERS = """provider "schema_registry" {
  url   = "%s"
  token = secret_env("TOKEN")
  headers = {
    "target-sr-cluster"          = secret_env("SR_CLUSTER")
    "Confluent-Identity-Pool-Id" = %s
  }
}

resource "schema_registry_schema" "order" {
  subject = "orders-value"
  schema  = jsonencode({ type = "record", name = "Order", fields = [] })
}
"""


def test_headers_reach_the_registry_and_no_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request has them; plan, state, log and output have neither values nor names of
    variables."""
    for name, value in (("TOKEN", "t"), ("SR_CLUSTER", "lsrc-hidden"), ("POOL", "pool-hidden")):
        monkeypatch.setenv(name, value)
    folder.served.answers = _answer_anybody(folder)
    text = HEADERS % (folder.served.url, 'secret_env("POOL")')
    (folder.path / "main.kf.hcl").write_text(text)
    shown = folder.run("plan", "--out", "p.plan")
    shown += folder.run("show", "p.plan", "--json") + folder.run("apply", "p.plan")
    shown += folder.run("audit", "show") + folder.run("show", "--json")
    files = [path for path in folder.path.rglob("*") if path.is_file() and path.suffix != ".hcl"]
    assert len(files) > 2
    for content in (shown, *(path.read_text(errors="replace") for path in files)):
        assert "hidden" not in content and "SR_CLUSTER" not in content
    for request in folder.served.asked:
        assert request.headers["target-sr-cluster"] == "lsrc-hidden"
        assert request.headers["confluent-identity-pool-id"] == "pool-hidden"


def _answer_anybody(folder: Folder) -> Callable[[Request], tuple[int, Any]]:
    def answer(request: Request) -> tuple[int, Any]:
        found = folder.registry.answer(read_call(request))
        return found.status, found.body

    return answer


@pytest.mark.parametrize(
    ("line", "text", "place"),
    [
        ('Host = secret_env("X")', "the header Host cannot be set", 7),
        ('content-length = secret_env("X")', "the header content-length cannot be set", 7),
        ('Target-SR-Cluster = secret_env("X")', "Target-SR-Cluster and target-sr-cluster are", 4),
        ('Authorization = secret_env("X")', "logins: token, and Authorization in headers", 4),
        ('X-Pool = "in the file"', "needs a reference to a secret", 4),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_at_its_line(
    folder: Folder, line: str, text: str, place: int
) -> None:
    """While typing: nothing connects for that."""
    block = HEADERS % ("https://registry", 'secret_env("POOL")')
    (folder.path / "main.kf.hcl").write_text(block.replace("  }\n", f"    {line}\n  }}\n", 1))
    said = folder.run("validate", code=1)
    assert text in said and f"main.kf.hcl:{place}:" in said, said
    assert "in the file" not in said
    assert not folder.served.asked


TEST_FILE = """
simulate "schema_registry" {
  compatibility = "FULL"
}

given "schema_registry_schema" "old" {
  subject = "orders-value"
  schema  = jsonencode({ type = "record", name = "Order", fields = [] })
}

run "apply" {
  command = apply

  assert {
    condition     = plan.counts.adopt == 1 && plan.counts.change == 1
    error_message = "The schema that is there becomes ours, and gets a new version."
  }
}
"""


def test_a_configuration_can_be_tested_without_a_registry(folder: Folder) -> None:
    """`kafkaform test` plans and applies on a simulated registry."""
    note = {"name": "note", "type": "string", "default": ""}
    folder.write(record(note), "order.avsc")
    folder.write(
        'resource "schema_registry_schema" "order" {\n  topic  = "orders"\n'
        '  schema = file("order.avsc")\n  lifecycle {\n    adopt = true\n  }\n}\n'
    )
    (folder.path / "first.kftest.hcl").write_text(TEST_FILE)
    assert "1 passed" in folder.run("test")
    assert not folder.registry.calls
