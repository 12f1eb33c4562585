"""Requests to workers: sent once, settled by reading, and fitted to what old workers can do."""

from __future__ import annotations

import pytest

from kafkaform.apply import recovery
from kafkaform.provider.http.exchange import Call

from ...kit.connect.folder import SECRET, ConnectFolder, connector
from ...kit.http.faults import Fault
from ...kit.http.proxy import Proxy, proxying

SINK = {
    "class": '"GuardedSink"',
    "secret_config": '{ pin = secret_env("CONNECT_SECRET") }',
}


def lead_through(folder: ConnectFolder, proxy: Proxy) -> None:
    """The configuration names the proxy."""
    text = (folder.here.path / "main.kf.hcl").read_text()
    folder.here.write("main.kf.hcl", text.replace(folder.served.url, proxy.url))


@pytest.mark.parametrize("kind", ["reset after", "cut", "lose"])
def test_a_create_whose_answer_is_lost_is_sent_once(
    folder: ConnectFolder, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading shows the connector as it was requested, so it is ours."""
    monkeypatch.setattr(recovery, "MARGIN_SECONDS", 0.5)
    folder.declare(connector("a", state='"stopped"'))
    with proxying(folder.served.port) as proxy:
        lead_through(folder, proxy)
        proxy.arm(Fault("POST /connectors", kind))
        folder.here.done("apply", "-auto-approve")
        assert proxy.all_struck
    assert folder.list_writes() == ["POST /connectors"]
    folder.declare(connector("a", state='"stopped"'))
    assert "No changes" in folder.here.done("plan").text


def test_a_request_that_never_arrived_failed(
    folder: ConnectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time in which it could still be executed, the unchanged workers prove it."""
    monkeypatch.setattr(recovery, "MARGIN_SECONDS", 0.5)
    folder.declare(connector("a", state='"stopped"'))
    with proxying(folder.served.port) as proxy:
        lead_through(folder, proxy)
        proxy.arm(Fault("POST /connectors", "reset before"))
        folder.here.fails("apply", "-auto-approve", code=5)
    assert not folder.workers.connectors and not folder.list_writes()


def test_a_lost_answer_after_a_secret_stays_open(
    folder: ConnectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads back whether a new version arrived: the next apply of the same plan sends it."""
    monkeypatch.setattr(recovery, "MARGIN_SECONDS", 0.5)
    sink = {**SINK, "config": '{ topics = "a" }', "state": '"stopped"'}
    folder.declare(connector("a", **sink, secret_config_version='"1"'))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    folder.declare(connector("a", **sink, secret_config_version='"2"'))
    with proxying(folder.served.port) as proxy:
        lead_through(folder, proxy)
        proxy.arm(Fault("PATCH /connectors/a/config", "reset after"))
        folder.here.fails("apply", "-auto-approve", code=6)
    assert folder.list_writes() == ["PATCH /connectors/a/config"]


def test_a_rebalance_is_waited_for(folder: ConnectFolder) -> None:
    """Workers refuse with 409 and execute nothing; the same request is sent again."""
    folder.declare(connector("a"))
    folder.workers.rebalances = 2
    folder.here.done("apply", "-auto-approve")
    assert "a" in folder.workers.connectors


@pytest.mark.parametrize(
    "request_line", ["PUT /connector-plugins/FileStreamSource/config/validate", "POST /connectors"]
)
def test_workers_that_have_too_much_to_do_are_asked_again(
    folder: ConnectFolder, request_line: str
) -> None:
    """429 without a time, of a gateway before the workers: it is not final, in the dry run nor when
    it is sent."""
    folder.declare(connector("a"))
    with proxying(folder.served.port) as proxy:
        lead_through(folder, proxy)
        proxy.arm(Fault(request_line, "refuse", status=429, body=b"{}", times=2))
        said = folder.here.done("apply", "-auto-approve")
        assert proxy.all_struck
    assert "The Connect cluster refuses 1 step for now" in said.text
    assert folder.list_writes() == ["POST /connectors"]
    log = folder.here.files()["kafkaform.audit.jsonl"]
    assert log.count(b'"kind":"intent"') == log.count(b'"kind":"outcome"') == 1


def test_a_change_that_is_refused_for_now_is_sent_again(folder: ConnectFolder) -> None:
    """Also the change of a secret, which nobody could read back: 429 says that nothing happened."""
    sink = {**SINK, "config": '{ topics = "a" }', "state": '"stopped"'}
    folder.declare(connector("a", **sink, secret_config_version='"1"'))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    folder.declare(connector("a", **sink, secret_config_version='"2"'))
    with proxying(folder.served.port) as proxy:
        lead_through(folder, proxy)
        proxy.arm(Fault("PATCH /connectors/a/config", "refuse", status=429, body=b"", times=2))
        folder.here.done("apply", "-auto-approve")
        assert proxy.all_struck
    assert folder.list_writes() == ["PATCH /connectors/a/config"]


def test_a_refused_read_is_repeated_and_a_write_is_not(folder: ConnectFolder) -> None:
    """500 says of a read that workers rebalance; of a write it says nothing for certain."""
    folder.declare(connector("a"))
    body = b'{"error_code": 500, "message": "Request cannot be completed because a rebalance is '
    with proxying(folder.served.port) as proxy:
        lead_through(folder, proxy)
        proxy.arm(Fault("GET /connectors/a", "refuse", status=500, body=body + b'expected"}'))
        proxy.arm(Fault("POST /connectors", "refuse", status=500, body=body + b'expected"}'))
        said = folder.here.fails("apply", "-auto-approve", code=5)
        assert "the request was not executed" in said and not folder.list_writes()
        folder.here.done("apply", "-auto-approve")
    assert folder.list_writes() == ["POST /connectors"]


def test_a_connector_that_somebody_made_meanwhile_is_left_alone(folder: ConnectFolder) -> None:
    """409 has two meanings: this one is no rebalance, and is not asked again."""
    folder.declare(connector("a"))
    plan = str(folder.here.path / "plan.kfplan")
    folder.here.done("plan", f"-out={plan}")
    with proxying(folder.served.port) as proxy:
        lead_through(folder, proxy)
        body = b'{"error_code": 409, "message": "Connector a already exists"}'
        proxy.arm(Fault("POST /connectors", "refuse", status=409, body=body))
        said = folder.here.fails("apply", "-auto-approve", code=5)
    assert "already exists" in said and not folder.list_writes()


def test_old_workers_get_the_whole_configuration(folder: ConnectFolder) -> None:
    """Before 3.8 there is no PATCH: what stays is sent back as it is, secrets included."""
    folder.workers.version = "3.7.1"
    folder.declare(connector("a", **SINK, config='{ topics = "a", host = "x" }'))
    folder.here.done("apply", "-auto-approve")
    folder.find("a").config["somebody's"] = "else"
    folder.list_writes()
    folder.declare(connector("a", **SINK, config='{ topics = "b", "somebody\'s" = null }'))
    folder.here.done("apply", "-auto-approve")
    assert folder.list_writes() == [
        "PATCH /connectors/a/config",
        "PUT /connectors/a/config",
    ]
    assert folder.find("a").config == {
        "connector.class": "GuardedSink",
        "name": "a",
        "pin": SECRET,
        "somebody's": "else",
        "topics": "b",
    }
    assert SECRET not in folder.read_files()


def test_a_masked_secret_is_never_sent_back(folder: ConnectFolder) -> None:
    """A service that shows asterisks would store them as the password."""
    folder.workers.version = "3.7.1"
    folder.declare(connector("a", **SINK, config='{ topics = "a" }'))
    folder.here.done("apply", "-auto-approve")
    folder.find("a").config["pin"] = "****************"
    folder.declare(connector("a", **SINK, config='{ topics = "b" }'))
    said = folder.here.fails("apply", "-auto-approve", code=5)
    assert "do not show pin" in said and folder.find("a").config["topics"] == "a"


def test_a_reference_is_no_secret(folder: ConnectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be read back as plain text, and sent with every apply."""
    monkeypatch.setenv("CONNECT_SECRET", "${file:/etc/a:b}")
    folder.declare(connector("a", **SINK, config='{ topics = "a" }'))
    said = folder.here.fails("apply", "-auto-approve", code=5)
    assert "is a reference for a config provider" in said and not folder.workers.connectors


def test_one_listing_answers_all_data_sources(folder: ConnectFolder) -> None:
    """200 of them ask as often as one."""
    config = {"connector.class": "FileStreamSource", "topic": "t", "file": "f"}
    for n in range(200):
        body = {"name": f"c{n}", "config": config, "initial_state": "STOPPED"}
        assert folder.workers.handle(Call("POST", "/connectors", body)).succeeded
    folder.declare(
        'locals {\n  names = [for n in range(200) : "c${n}"]\n}\n'
        'data "kafka_connect_connector" "all" {\n  for_each = toset(local.names)\n'
        "  name     = each.value\n}\n"
        'output "states" {\n'
        "  value = [for c in data.kafka_connect_connector.all : c.state]\n}\n"
    )
    folder.here.done("plan")
    paths = [request.path for request in folder.served.asked]
    assert sum("expand" in path for path in paths) <= 2, paths
    assert not [path for path in paths if path.startswith("/connectors/")]


def test_one_listing_reads_all_connectors(folder: ConnectFolder) -> None:
    """A plan of many connectors asks as often as one of a single connector."""
    names = [f"c{i}" for i in range(30)]
    folder.declare(*(connector(name, state='"stopped"') for name in names))
    folder.here.done("apply", "-auto-approve")
    folder.served.asked.clear()
    assert "No changes" in folder.here.done("plan").text
    asked = [one.path for one in folder.served.asked if one.path != "/"]
    assert sorted(asked) == [
        "/connector-plugins/FileStreamSource/config",
        "/connector-plugins?connectorsOnly=false",
        "/connectors",
        "/connectors?expand=info&expand=status",
    ]
