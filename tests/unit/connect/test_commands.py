"""Plan, apply and import connectors with the commands of kafkaform."""

from __future__ import annotations

import json

import pytest

from kafkaform.plan.codec import decode

from ...kit.connect.folder import SECRET, ConnectFolder, connector

TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded\n"
    "\tat org.apache.kafka.connect.runtime.WorkerTask.run(WorkerTask.java:230)\n"
    f"Caused by: java.net.ConnectException: jdbc://me:{SECRET}@db refused\n"
    "\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
)


def test_a_connector_is_created_changed_and_deleted(folder: ConnectFolder) -> None:
    """Each apply sends one request, and the plan after it finds nothing to do."""
    folder.declare(connector("lines"))
    folder.here.done("apply", "-auto-approve")
    assert folder.list_writes() == ["POST /connectors"]
    assert folder.find("lines").config["topic"] == "orders"
    assert "No changes" in folder.here.done("plan").text
    folder.declare(connector("lines", config='{ topic = "orders", "batch.size" = 5 }'))
    text = folder.here.done("apply", "-auto-approve").text
    assert '+ "batch.size" = "2000" (default) → "5"' in text and '- "file" = "/dev/null"' in text
    assert folder.list_writes() == ["PATCH /connectors/lines/config"]
    assert "file" not in folder.find("lines").config
    assert "No changes" in folder.here.done("plan").text
    said = folder.here.done("destroy", "--confirm", f"connect:{folder.workers.cluster_id}").text
    assert "its offsets stay" in said and "the connector lines copies no more records" in said
    assert folder.list_writes() == ["DELETE /connectors/lines"]
    assert not folder.workers.connectors


def test_a_secret_is_sent_and_left_nowhere(folder: ConnectFolder) -> None:
    """It is sent with the create and with a new version, stays through other changes, and is in no
    file and no output, although the workers return it in plain text."""
    sink = {
        "class": '"GuardedSink"',
        "secret_config": '{ pin = secret_env("CONNECT_SECRET") }',
        "secret_config_version": '"1"',
    }
    config = '{{ topics = ["a", "b"], host = "{}" }}'
    folder.declare(connector("sink", **sink, config=config.format("one")))
    said = folder.here.done("apply", "-auto-approve").text
    assert folder.find("sink").config["pin"] == SECRET
    assert "No changes" in folder.here.done("plan").text
    folder.declare(connector("sink", **sink, config=config.format("two")))
    said += folder.here.done("apply", "-auto-approve").text
    assert folder.find("sink").config == {
        "connector.class": "GuardedSink",
        "host": "two",
        "name": "sink",
        "pin": SECRET,
        "topics": "a,b",
    }
    folder.list_writes()
    again = {**sink, "secret_config_version": '"2"'}
    folder.declare(connector("sink", **again, config=config.format("two")))
    said += folder.here.done("apply", "-auto-approve").text
    assert folder.list_writes() == ["PATCH /connectors/sink/config"]
    said += folder.here.done("state", "show", "kafka_connect_connector.sink").text
    assert SECRET not in said + folder.read_files()


def test_a_secret_that_somebody_removed_is_sent_again(folder: ConnectFolder) -> None:
    """Which secrets are set is visible, although their values are not compared."""
    sink = connector(
        "sink",
        **{"class": '"GuardedSink"'},
        config='{ topics = "a" }',
        secret_config='{ pin = secret_env("CONNECT_SECRET") }',
    )
    folder.declare(sink)
    folder.here.done("apply", "-auto-approve")
    del folder.find("sink").config["pin"]
    assert "secret_keys" in folder.here.done("plan").text
    folder.here.done("apply", "-auto-approve")
    assert folder.find("sink").config["pin"] == SECRET


def test_a_secret_in_plain_text_is_refused_with_its_line(folder: ConnectFolder) -> None:
    """By its name when the configuration is read, by the plugin's definition in the plan."""
    folder.declare(connector("a", config='{ topic = "a", "connection.password" = "x" }'))
    said = folder.here.fails("validate")
    assert 'config["connection.password"] would be a secret in plain text' in said
    assert "main.kf.hcl:" in said and "secret_config" in said
    folder.declare(
        connector("a", **{"class": '"GuardedSink"'}, config='{ topics = "a", pin = "1" }')
    )
    said = folder.here.fails("plan", code=8)
    assert 'config["pin"] would be a secret in plain text' in said and "secret_config" in said
    folder.here.fails("apply", "-auto-approve", code=8)
    assert not folder.workers.connectors


def test_what_a_config_provider_resolves_stays_text(folder: ConnectFolder) -> None:
    """`${file:…}` is no secret: it is shown, recorded and compared."""
    reference = "$${file:/etc/secrets:password}"
    folder.declare(
        connector("a", config=f'{{ topic = "a", "connection.password" = "{reference}" }}')
    )
    folder.here.done("apply", "-auto-approve")
    assert folder.find("a").config["connection.password"] == reference[1:]
    assert "No changes" in folder.here.done("plan").text


def test_a_dry_run_names_each_config_and_its_place(folder: ConnectFolder) -> None:
    """Nothing is sent if a worker refuses the configuration of any connector."""
    folder.declare(
        connector("good"),
        connector("bad", config='{ "errors.retry.timeout" = "soon", "batch.size" = "many" }'),
    )
    said = folder.here.fails("apply", "-auto-approve")
    assert 'config["errors.retry.timeout"]: Invalid value soon' in said
    assert 'config["batch.size"]: Invalid value many' in said
    assert 'config["topic"]: Missing required configuration "topic"' in said
    assert "kafka_connect_connector.bad" in said and not folder.workers.connectors


def test_an_unknown_plugin_is_refused_in_the_plan(folder: ConnectFolder) -> None:
    """With the name that was probably meant."""
    folder.declare(connector("a", **{"class": '"org.apache.kafka.connect.file.FileStreamSorce"'}))
    said = folder.here.fails("plan", code=8)
    assert "no worker has the plugin" in said and "FileStreamSourceConnector" in said


def test_what_the_block_shows_is_found_without_workers(folder: ConnectFolder) -> None:
    """With file and line; a secret that is also a config, and a number of tasks that no worker
    takes."""
    secret = 'secret_config = { file = secret_env("CONNECT_SECRET") }'
    folder.declare(connector("a", secret, config='{ topic = "a", file = "x", "tasks.max" = 0 }'))
    said = folder.here.fails("validate")
    assert "tasks.max of the connector a is 0, and not a whole number from 1 on" in said
    assert '"file" is in config and in secret_config' in said
    assert "main.kf.hcl:" in said and not folder.served.asked


def test_what_is_misspelt_for_every_connector_is_found_without_workers(
    folder: ConnectFolder,
) -> None:
    """And names that workers cannot serve, with file and line."""
    folder.declare(connector("a", config='{ topic = "a", "task.max" = 2 }'))
    said = folder.here.done("validate").text
    assert '"task.max" is spelled almost like' in said and 'Did you mean "tasks.max"?' in said
    folder.declare(connector("a").replace('"a"\n', '"100%"\n'))
    said = folder.here.fails("validate")
    assert "because of the % in its name" in said and "main.kf.hcl:" in said
    assert not folder.served.asked


def test_short_and_full_names_of_a_class_are_no_change(folder: ConnectFolder) -> None:
    """Whichever of them the workers have stored."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    full = '"org.apache.kafka.connect.file.FileStreamSourceConnector"'
    folder.declare(connector("a", **{"class": full}))
    assert "No changes" in folder.here.done("plan").text
    folder.find("a").config["connector.class"] = full.strip('"')
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    assert "No changes" in folder.here.done("plan").text


def test_a_misspelt_config_is_named_in_the_plan(folder: ConnectFolder) -> None:
    """The worker would take it. The plugin is asked once for what it declares."""
    folder.declare(connector("a", config='{ topic = "a", "batch.sizes" = 5 }'), connector("b"))
    saved = folder.here.path / "plan.kfplan"
    folder.here.done("plan", f"-out={saved}")
    changes = decode(saved.read_bytes(), "").changes
    (finding,) = (finding for change in changes for finding in change.findings)
    assert finding.rule == "connector-config-unknown" and finding.path == ("config", "batch.sizes")
    assert finding.fix == 'Did you mean "batch.size"?'
    asked = [one.path for one in folder.served.asked if one.path.endswith("/config")]
    assert asked == ["/connector-plugins/FileStreamSource/config"]


def test_a_renamed_connector_is_told_to_start_over(folder: ConnectFolder) -> None:
    """A new name is a new connector without offsets."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.declare(connector("b"))
    said = folder.here.done("plan").text
    assert "the connector b looks like a, which this plan deletes, under another name" in said


def test_what_a_worker_fills_in_is_no_drift(folder: ConnectFolder) -> None:
    """The name, and a config that somebody set to its default; another value is shown and
    removed."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.find("a").config["batch.size"] = "2000"
    assert "No changes" in folder.here.done("plan").text
    folder.find("a").config["batch.size"] = "7"
    assert '- "batch.size" = "7"' in folder.here.done("plan").text
    folder.here.done("apply", "-auto-approve")
    assert "batch.size" not in folder.find("a").config


@pytest.mark.parametrize(("state", "verb"), [("paused", "pause"), ("stopped", "stop")])
def test_a_connector_is_halted_and_resumed(folder: ConnectFolder, state: str, verb: str) -> None:
    """The plan says that it copies no records meanwhile; halting comes before new configs, and
    running after them."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    changed = '{ topic = "b" }'
    folder.declare(connector("a", state=f'"{state}"', config=changed))
    assert "the connector a copies no records while it is" in folder.here.done("plan").text
    folder.here.done("apply", "-auto-approve")
    assert folder.list_writes() == [f"PUT /connectors/a/{verb}", "PATCH /connectors/a/config"]
    assert folder.find("a").state == state.upper()
    assert "No changes" in folder.here.done("plan").text
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    assert folder.list_writes() == ["PATCH /connectors/a/config", "PUT /connectors/a/resume"]


def test_a_failed_connector_is_stopped_and_not_restarted(folder: ConnectFolder) -> None:
    """Also one that has failed itself, whose tasks can still run."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    folder.find("a").trace, folder.find("a").connector = TRACE, True
    folder.declare(connector("a", state='"stopped"'))
    said = folder.here.done("apply", "-auto-approve").text
    assert "what has failed of the connector a is stopped with it, not restarted" in said
    assert folder.list_writes() == ["PUT /connectors/a/stop"]
    assert "No changes" in folder.here.done("plan").text


def test_a_connector_that_somebody_deleted_is_created_again(folder: ConnectFolder) -> None:
    """The plan compares with the workers, not with what the last run left."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.workers.connectors.clear()
    folder.list_writes()
    assert "(deleted outside kafkaform)" in folder.here.done("apply", "-auto-approve").text
    assert folder.list_writes() == ["POST /connectors"]


def test_a_connector_that_runs_already_is_adopted_without_a_request(folder: ConnectFolder) -> None:
    """Without a state, the plan finds it, and does nothing to it unless it is told to."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    for name in ("kafkaform.state.json", "kafkaform.audit.jsonl"):
        (folder.here.path / name).unlink()
    folder.list_writes()
    assert "does not manage it [object-unmanaged]" in folder.here.fails("plan", code=8)
    assert "1 to adopt" in folder.here.done("plan", "--adopt=*").text
    folder.here.done("apply", "-auto-approve", "--adopt=*")
    assert not folder.list_writes()


def test_a_connector_can_be_created_without_running(folder: ConnectFolder) -> None:
    """It never runs in between (KIP-980)."""
    folder.declare(connector("a", state='"stopped"'))
    folder.here.done("apply", "-auto-approve")
    assert folder.list_writes() == ["POST /connectors"]
    assert folder.find("a").state == "STOPPED"


def test_what_has_failed_is_told_and_restarted_once(folder: ConnectFolder) -> None:
    """The plan says which task failed and why, without secrets; each apply restarts it once."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.list_writes()
    folder.find("a").trace = TRACE
    said = folder.here.done("plan").text
    assert "task 0 failed on worker connect-1:8083" in said
    assert "Tolerance exceeded" in said and "refused" in said
    assert "restarted once" in said and SECRET not in said
    folder.here.done("apply", "-auto-approve")
    assert folder.list_writes() == ["POST /connectors/a/restart?includeTasks=true&onlyFailed=true"]
    assert "No changes" in folder.here.done("plan").text


def test_a_failure_after_the_apply_is_reported(folder: ConnectFolder) -> None:
    """The connector is written down and recorded, and the run ends with 5 and the reason."""
    folder.declare(connector("a"))
    folder.here.done("apply", "-auto-approve")
    folder.find("a").trace, folder.find("a").connector = TRACE, True
    ignored = 'lifecycle {\n    ignore_changes = ["failures"]\n  }'
    folder.declare(connector("a", ignored, config='{ topic = "b" }'))
    said = folder.here.fails("apply", "-auto-approve", code=5)
    assert "the connector failed on worker" in said and SECRET not in said
    assert folder.find("a").config["topic"] == "b"
    assert SECRET not in folder.read_files()


def test_a_slow_start_goes_on_without_the_run(folder: ConnectFolder) -> None:
    """The apply ends with 0 and says so; the next one reports the end."""
    folder.workers.startup_seconds = 3600.0
    folder.declare(connector("a"))
    said = folder.here.done("apply", "-auto-approve").text
    assert "the startup continues in the background" in said
    said = folder.here.done("plan").text
    assert "No changes" in said and "starting since run" in said
    folder.workers.startup_seconds = 0.0
    said = folder.here.done("apply", "-auto-approve").text
    assert "the startup that run" in said and "has ended" in said


def test_import_all_writes_a_configuration_without_changes(folder: ConnectFolder) -> None:
    """Secrets become references, and a plan with them changes nothing."""
    folder.workers.connectors.clear()
    folder.declare(
        connector("one", config='{ topic = "a", "tasks.max" = 2 }'),
        connector(
            "two",
            **{"class": '"GuardedSink"'},
            config='{ "topics.regex" = "a.*" }',
            secret_config='{ pin = secret_env("CONNECT_SECRET") }',
            state='"paused"',
        ),
    )
    folder.here.done("apply", "-auto-approve")
    (folder.here.path / "kafkaform.state.json").unlink()
    (folder.here.path / "kafkaform.audit.jsonl").unlink()
    folder.declare()
    folder.here.done("import", "--all", "--out", "found.kf.hcl")
    text = (folder.here.path / "found.kf.hcl").read_text()
    assert SECRET not in text and '"topics.regex"' in text and '"paused"' in text


def test_several_are_forgotten_and_imported_at_once(folder: ConnectFolder) -> None:
    """With one edit of the state, and with listings of the workers; a name that does not exist
    leaves all of them out."""
    names = ("a", "b", "c")
    folder.declare(*map(connector, names))
    folder.here.done("apply", "-auto-approve")
    addresses = [f"kafka_connect_connector.{name}" for name in names]
    said = folder.here.fails("state", "rm", *addresses, "kafka_connect_connector.d")
    assert "kafka_connect_connector.d" in said
    assert folder.here.done("state", "list").text.split() == addresses
    assert "No changes" in folder.here.done("plan").text
    folder.here.done("state", "rm", *addresses[:2])
    assert folder.here.done("state", "list").text.split() == addresses[2:]
    folder.served.asked.clear()
    pairs = [word for pair in zip(addresses, names, strict=True) for word in pair]
    folder.here.done("import", *pairs[:4])
    paths = [request.path for request in folder.served.asked]
    assert sum("expand" in path for path in paths) == 2  # the plan, and the look before it is kept
    assert not [path for path in paths if "/connectors/" in path] and not folder.list_writes()
    assert folder.here.done("state", "list").text.split() == addresses
    assert "No changes" in folder.here.done("plan").text
    folder.here.done("state", "rm", *addresses)
    del folder.workers.connectors["b"]
    assert "does not exist" in folder.here.fails("import", *pairs, code=8)
    assert not folder.here.done("state", "list").text.split()
    assert "an ID for each object" in folder.here.fails("import", *pairs[:3])


def test_data_sources_show_connectors_and_plugins(folder: ConnectFolder) -> None:
    """A connector without its secrets, and the plugins of a type."""
    sink = connector(
        "a",
        **{"class": '"GuardedSink"'},
        config='{ topics = "a" }',
        secret_config='{ pin = secret_env("CONNECT_SECRET") }',
    )
    folder.declare(sink)
    folder.here.done("apply", "-auto-approve")
    folder.declare(
        sink,
        'data "kafka_connect_connector" "a" {\n  name = "a"\n}\n'
        'data "kafka_connect_plugins" "sinks" {\n  type = "sink"\n}\n'
        'output "a" {\n  value = data.kafka_connect_connector.a\n}\n'
        'output "sinks" {\n  value = data.kafka_connect_plugins.sinks.plugins[*].class\n}\n',
    )
    folder.here.done("apply", "-auto-approve")
    shown = folder.here.json("output", "-json")
    assert shown["a"]["value"]["config"] == {"topics": "a"}
    assert shown["a"]["value"]["secret_keys"] == {"pin": "set"}
    assert len(shown["sinks"]["value"]) == 2
    assert SECRET not in json.dumps(shown)


def test_two_clusters_on_one_kafka_are_told_apart_by_their_group(folder: ConnectFolder) -> None:
    """A group that the workers do not have is refused before anything is read."""
    folder.declare(connector("a"), provider='  group_id = "connect-cluster"')
    folder.here.done("apply", "-auto-approve")
    assert "connect:simulated-kafka/connect-cluster" in folder.here.done("plan").text
    folder.declare(connector("a"), provider='  group_id = "other-cluster"')
    assert "the group.id of the workers is not other-cluster" in folder.here.fails("plan")
