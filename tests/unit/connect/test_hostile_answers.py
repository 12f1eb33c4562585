"""Answers that no worker gives: nothing is concluded from them, and none is repeated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaform_connect.rest import (
    UnreadableAnswer,
    read_connector,
    read_connectors,
    read_definition,
    read_names,
    read_plugins,
    read_server,
    read_validation,
)

from ...kit.connect.folder import SECRET, ConnectFolder, connector
from ...kit.http.faults import FOR_EVER, Fault
from ...kit.http.proxy import proxying

INFO = {"name": "a", "config": {"name": "a"}, "tasks": [], "type": "sink"}
STATUS = {"name": "a", "connector": {"state": "RUNNING", "worker_id": "w"}, "tasks": []}

HOSTILE: dict[str, bytes] = {
    "NaN": b'{"a": {"info": NaN}}',
    "a list": b"[]",
    "no info": b'{"a": {}}',
    "another connector": json.dumps({"a": {"info": {**INFO, "name": "b"}}}).encode(),
    "a number as a config": json.dumps({"a": {"info": {**INFO, "config": {"x": 1}}}}).encode(),
    "a deep value": b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a key twice": b'{"a": {"info": null}, "a": {"info": null}}',
    "half a surrogate": b'{"\\ud800": {"info": null}}',
    "tasks without numbers": json.dumps(
        {"a": {"info": INFO, "status": {**STATUS, "tasks": [{"id": "0", "state": "RUNNING"}]}}}
    ).encode(),
    "no JSON": b"<html>login</html>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_listing_proves_nothing(folder: ConnectFolder, name: str) -> None:
    """The plan is blocked: a connector is neither created again nor forgotten."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    with proxying(folder.served.port) as proxy:
        folder.declare(connector("a"))
        text = (folder.here.path / "main.kf.hcl").read_text()
        folder.here.write("main.kf.hcl", text.replace(folder.served.url, proxy.url))
        proxy.arm(Fault("GET /connectors?expand*", "tamper", body=HOSTILE[name], times=FOR_EVER))
        said = folder.here.fails("apply", "-auto-approve", code=8)
    assert "could not be read" in said
    assert not folder.list_writes()


def test_a_foreign_404_is_no_absence(folder: ConnectFolder) -> None:
    """A wrong path and a proxy answer 404, too: only a worker that names the connector counts."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    del folder.workers.connectors["a"]
    with proxying(folder.served.port) as proxy:
        text = (folder.here.path / "main.kf.hcl").read_text()
        folder.here.write("main.kf.hcl", text.replace(folder.served.url, proxy.url))
        body = b'{"error_code": 404, "message": "HTTP 404 Not Found"}'
        struck = Fault("GET /connectors/a", "say", status=404, body=body, times=FOR_EVER)
        proxy.arm(struck)
        assert "could not be read" in folder.here.fails("plan", code=8)
        proxy.disarm()
        assert "deleted outside" in folder.here.done("plan").text


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b'{"version": "4.3.1"}', b'{"version": 1, "kafka_cluster_id": "x"}']
)
def test_what_is_no_worker_is_refused(folder: ConnectFolder, body: bytes) -> None:
    """Before anything is read."""
    with proxying(folder.served.port) as proxy:
        folder.declare(connector("a"))
        text = (folder.here.path / "main.kf.hcl").read_text()
        folder.here.write("main.kf.hcl", text.replace(folder.served.url, proxy.url))
        proxy.arm(Fault("GET /", "tamper", body=body, times=FOR_EVER))
        said = folder.here.fails("plan")
    assert "Check url" in said


def test_another_cluster_at_the_same_address_is_refused(folder: ConnectFolder) -> None:
    """Nothing is sent to it."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    folder.workers.cluster_id = "another-kafka"
    folder.declare(connector("a", config='{ topic = "b" }'))
    folder.here.fails("apply", "-auto-approve", code=4)
    assert not folder.list_writes()


def test_an_error_of_a_worker_does_not_repeat_a_secret(folder: ConnectFolder) -> None:
    """What it has against a configuration can contain the value."""
    folder.declare(
        connector(
            "a",
            **{"class": '"GuardedSink"'},
            config='{ topics = "a" }',
            secret_config='{ pin = secret_env("CONNECT_SECRET") }',
        )
    )
    with proxying(folder.served.port) as proxy:
        text = (folder.here.path / "main.kf.hcl").read_text()
        folder.here.write("main.kf.hcl", text.replace(folder.served.url, proxy.url))
        message = f"Invalid value {SECRET} for pin"
        body = json.dumps({"error_code": 400, "message": message}).encode()
        proxy.arm(Fault("POST /connectors", "refuse", status=400, body=body, times=FOR_EVER))
        said = folder.here.fails("apply", "-auto-approve", code=5)
    assert "Invalid value" in said
    assert SECRET not in said + folder.read_files()


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (read_server, []),
        (read_server, {"version": None}),
        (read_names, {"a": 1}),
        (read_names, [1]),
        (read_connectors, []),
        (read_connectors, {"a": 1}),
        (read_definition, {}),
        (read_definition, [{"name": 1}]),
        (read_definition, [{"name": "a"}] * 10_001),
        (read_validation, {"configs": {}, "error_count": 0}),
        (read_validation, {"configs": [], "error_count": "0"}),
        (read_validation, {"configs": [], "error_count": 3}),
        (read_validation, {"configs": [{"value": {"name": "a", "errors": [1]}}], "error_count": 1}),
        (read_plugins, {}),
        (read_plugins, [{"class": "a"}]),
        (read_names, ["x" * (1024 * 1024 + 1)]),
    ],
)
def test_a_wrong_shape_is_refused(read: Any, body: Any) -> None:
    """Every reader checks what it reads; the message repeats no value."""
    with pytest.raises(UnreadableAnswer) as caught:
        read(body)
    assert len(str(caught.value)) < 200


def test_too_many_configs_are_refused() -> None:
    """One answer must not fill a plan."""
    config = {f"k{i}": "v" for i in range(10_001)}
    with pytest.raises(UnreadableAnswer, match="more than"):
        read_connector({**INFO, "config": config}, None, "a")


def test_an_endless_stack_trace_is_cut() -> None:
    """It belongs to one connector, and must not make all of them unreadable."""
    failed = {"state": "FAILED", "worker_id": "w", "trace": "x" * 2_000_000}
    found = read_connector(INFO, {**STATUS, "connector": failed}, "a")
    assert found.status is not None and len(found.status.trace) < 100_000
