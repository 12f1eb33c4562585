"""Requests and answers that are lost on a real connection, other registries at the same address,
and logins that nobody may read."""

from __future__ import annotations

import json

import pytest

from kafkaform.apply import recovery
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.http.faults import Fault
from ...kit.http.proxy import Proxy, proxying
from ...kit.schema_registry.schemas import ORDER, ORDER_WITH_NOTE
from ...kit.schema_registry.server import PASSWORD, serve_registry
from .conftest import Folder

BLOCKS = """
provider "schema_registry" {
  url               = "%s"
  operation_timeout = 60
  concurrency       = 2
}

resource "schema_registry_schema" "order" {
  topic  = "orders"
  schema = file("order.avsc")
}
"""
WRITE = "POST /subjects/orders-value/versions"


def start(folder: Folder, proxy: Proxy, timeout: int = 60) -> None:
    """timeout: seconds for a request."""
    blocks = BLOCKS.replace("= 60", f"= {timeout}")
    (folder.path / "main.kf.hcl").write_text(blocks % proxy.url)
    folder.write(ORDER, "order.avsc")


def count_versions(folder: Folder) -> int:
    return len(folder.registry.subjects.list_versions("orders-value"))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("lose", marks=pytest.mark.slow("waits for the answer")),
        "reset after",
        "cut head",
        "garbage",
    ],
)
def test_a_schema_whose_answer_is_lost_counts_as_registered(folder: Folder, kind: str) -> None:
    """It is found by reading, and sent once."""
    with proxying(folder.served.port) as proxy:
        start(folder, proxy, timeout=10 if kind == "lose" else 60)
        proxy.arm(Fault(WRITE, kind))
        said = folder.run("apply", "-auto-approve")
        assert proxy.all_struck
        assert "No changes" in folder.run("plan")
    assert "1 added" in said
    assert count_versions(folder) == 1
    assert [request.path for request in folder.served.writes].count(
        "/subjects/orders-value/versions"
    ) == 1


@pytest.mark.slow("waits for as long as a request can take")
@pytest.mark.parametrize("kind", ["reset before", "swallow"])
def test_a_schema_that_never_arrives_is_sent_by_the_next_apply(
    folder: Folder, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody says so: the unchanged subject proves it after the time that a request can take."""
    monkeypatch.setattr(recovery, "MARGIN_SECONDS", 0.1)
    with proxying(folder.served.port) as proxy:
        start(folder, proxy, timeout=5)
        proxy.arm(Fault(WRITE, kind))
        folder.run("apply", "-auto-approve", code=5)
        assert count_versions(folder) == 0
        proxy.disarm()
        folder.run("apply", "-auto-approve")
    assert count_versions(folder) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [(302, b""), (404, b"<html>")],
)
def test_an_answer_of_a_proxy_is_no_success(folder: Folder, status: int, body: bytes) -> None:
    """The request did not arrive, and nothing is recorded as done."""
    with proxying(folder.served.port) as proxy:
        start(folder, proxy)
        proxy.arm(Fault(WRITE, "refuse", status=status, body=body))
        folder.run("apply", "-auto-approve", code=5)
    state = json.loads((folder.path / "kafkaform.state.json").read_text())
    assert state["objects"] == []


NO_LEADER = b'{"error_code": 50004, "message": "no leader"}'


@pytest.mark.parametrize(("status", "body"), [(500, NO_LEADER), (429, b"{}")])
def test_a_schema_that_is_refused_for_now_is_sent_again(
    folder: Folder, status: int, body: bytes
) -> None:
    """A registry without a leader, or with too much to do, has not executed the request, and names
    no time after which it will: it is sent until it is taken."""
    with proxying(folder.served.port) as proxy:
        start(folder, proxy)
        proxy.arm(Fault(WRITE, "refuse", status=status, body=body, times=3))
        said = folder.run("apply", "-auto-approve")
        assert proxy.all_struck
    assert "The schema registry refuses 1 step for now" in said and "1 added" in said
    assert count_versions(folder) == 1
    log = (folder.path / "kafkaform.audit.jsonl").read_text()
    assert log.count('"kind":"intent"') == log.count('"kind":"outcome"') == 1


@pytest.mark.slow("waits for as long as a request can take")
def test_a_schema_that_meets_an_unavailable_server_is_read_and_sent_again(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 can come after the effect: the subject is read until it is certain that nothing was
    executed, and only then the request is sent once more."""
    monkeypatch.setattr(recovery, "MARGIN_SECONDS", 0.1)
    with proxying(folder.served.port) as proxy:
        start(folder, proxy, timeout=5)
        proxy.arm(Fault(WRITE, "refuse", status=503, body=b""))
        folder.run("apply", "-auto-approve")
        assert proxy.all_struck
    assert count_versions(folder) == 1


def test_a_read_that_is_cut_makes_no_plan(folder: Folder) -> None:
    """A subject that could not be read is neither missing nor unchanged."""
    with proxying(folder.served.port) as proxy:
        start(folder, proxy)
        folder.run("apply", "-auto-approve")
        folder.write(ORDER_WITH_NOTE, "order.avsc")
        proxy.arm(Fault("GET /subjects/orders-value/versions/latest", "cut", times=99))
        said = folder.run("plan", code=8)
    assert "it could not be read" in said


def test_another_registry_at_the_address_is_refused(folder: Folder) -> None:
    """One that has an id is known again; the other one gets no request but the question who it
    is."""
    with proxying(folder.served.port) as proxy, serve_registry(SimulatedRegistry("other")) as other:
        start(folder, proxy)
        folder.run("apply", "-auto-approve")
        folder.write(ORDER_WITH_NOTE, "order.avsc")
        proxy.lead_to(other.port)
        said = folder.run("apply", "-auto-approve", code=4)
    assert "other/schema-registry" in said
    assert not other.writes


def test_nobody_reads_the_password(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in what is said nor in any file, whether the login is right or wrong."""
    block = (
        '  registry_id = "simulated/schema-registry"\n  username = "%s"\n'
        '  password = secret_env("REGISTRY_PASSWORD")\n}\n'
    )
    monkeypatch.setenv("REGISTRY_PASSWORD", PASSWORD)
    text = BLOCKS % folder.served.url
    folder.write(ORDER, "order.avsc")
    said = []
    for user, code in (("admin", 0), ("wrong", 1), ("nobody", 8)):
        (folder.path / "main.kf.hcl").write_text(text.replace("}\n", block % user, 1))
        said.append(folder.run("plan", "-out=saved", code=code))
        if not code:
            said.append(folder.run("apply", "-auto-approve"))
    assert "check the login in the provider block" in said[2]
    assert "the right Read on subject orders-value is missing" in said[3]
    files = [file.read_text() for file in folder.path.iterdir() if file.is_file()]
    assert not any(PASSWORD in text for text in (*said, *files))


def test_a_user_who_must_not_see_the_id_is_told_so(folder: Folder) -> None:
    """Taking the address for the id would lead to another state than that of other users."""
    folder.registry.users["admin"] = False
    folder.write(ORDER, "order.avsc")
    (folder.path / "main.kf.hcl").write_text(BLOCKS % folder.served.url)
    said = folder.run("plan", code=1)
    assert "must not see which registry answers" in said and "registry_id" in said
