"""`alter`: KIP-248's way to change one thing, with plan, dry run and log of an apply."""

from __future__ import annotations

import json

import pytest

from kafkaform.cli.command_tree import get_commands
from kafkaform.core.errors import UsageError
from kafkaform_kafka.commands.drafts import (
    DRAFTS,
    Pair,
    make_drafts,
    parse_keys,
    parse_pairs,
    read_edit,
)

from ...conftest import Broker
from ...kit.commands.bare import Bare
from ...kit.commands.folder import Folder
from ...kit.commands.here import Here
from ...kit.commands.terminal import Terminal
from ...kit.kafka.logins import Login

APPROVED = "--auto-approve"
PASSWORD = "p4ssw0rd-of-a-test"


# ── lists of configs ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("k=v", [("k", "v", 1)]),
        ("k1=v1,k2=[v1,v2,v2],k3=v3", [("k1", "v1", 1), ("k2", "v1,v2,v2", 7), ("k3", "v3", 21)]),
        (" a = b , c = [d, e] ", [("a", "b", 2), ("c", "d, e", 10)]),
        ("a=", [("a", "", 1)]),
        ("a=[]", [("a", "", 1)]),
        ("a=b=c", [("a", "b=c", 1)]),
        ("a=[x=1,y=[2,3]]", [("a", "x=1,y=[2,3]", 1)]),
        ("a=PLAINTEXT://[::1]:9092", [("a", "PLAINTEXT://[::1]:9092", 1)]),
    ],
)
def test_brackets_keep_commas(text: str, found: list[tuple[str, str, int]]) -> None:
    """As KIP-248 says; positions count characters from 1."""
    assert parse_pairs(text, "--add-config") == tuple(Pair(*item) for item in found)


@pytest.mark.parametrize(
    ("text", "position", "told"),
    [
        ("a=1,b", 5, "without `=`"),
        ("a=1,,b=2", 5, "without `=`"),
        ("=1", 1, "without a name"),
        ("a=[1,2", 3, "never closed"),
        ("a=[1]2", 3, "after the ]"),
        ("a=1,b=2,a=3", 9, "a again"),
    ],
)
def test_faults_in_lists_have_a_position(text: str, position: int, told: str) -> None:
    """They name the character and repeat no value."""
    with pytest.raises(UsageError) as caught:
        parse_pairs(text, "--add-config")
    assert f"character {position}: " in caught.value.message
    assert told in caught.value.message


def test_names_to_delete() -> None:
    """Commas separate them, and a value is a mistake."""
    assert parse_keys("a, b,a", "--delete-config") == ("a", "b")
    with pytest.raises(UsageError):
        parse_keys("a=1", "--delete-config")


# ── without a configuration ─────────────────────────────────────────────────────────────


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """Brokers, the cluster and default entities have one set of configs and limits."""
    return exclusive_broker


@pytest.fixture
def orders(bare: Bare) -> tuple[Bare, str]:
    """A topic that nothing manages, and its name."""
    bare.folder.create("orders", partitions=2)
    return bare, f"{bare.folder.prefix}orders"


def test_a_topic_is_altered_shown_logged_and_described(orders: tuple[Bare, str]) -> None:
    """Only what is named changes; the log has intent and outcome; the fresh state is printed."""
    bare, name = orders
    bare.folder.alter("orders", "max.message.bytes", "2000")
    said = bare.done(
        "alter", "topic", name, APPROVED,
        "--add-config", "retention.ms=6s,cleanup.policy=[compact,delete]",
    )  # fmt: skip
    assert "1 changed" in said.text
    # The risk is measured before anything is sent.
    assert f"! data loss: {name}" in said.out and "deletes about 0 B of 0 B" in said.out
    assert "it is unknown whether one manages" in said.err
    shown = said.out.split(f"CONFIGS FOR TOPIC {name}")[1]
    assert "retention.ms  = 6 s (6000)" in shown and "max.message.bytes  = 2000 B" in shown
    assert "Default config" not in shown and "compression.type" not in shown
    all_of_them = f"kafkaform describe configs topic {name}"
    assert all_of_them in shown
    assert "compression.type" in bare.done(*all_of_them.split()[1:]).out
    config = bare.folder.config("orders")
    assert config["cleanup.policy"] == "compact,delete"
    assert config["max.message.bytes"] == "2000"
    assert [r["kind"] for r in bare.records()][-4:] == ["intent", "outcome", "verify", "run_end"]
    (outcome,) = bare.records("outcome")
    assert {path["path"] for path in outcome["body"]["paths"]} == {
        "config.retention.ms",
        "config.cleanup.policy",
    }


def test_nothing_is_owned_afterwards(orders: tuple[Bare, str]) -> None:
    """State and log lie in a private folder of the cluster, and no object is recorded."""
    bare, name = orders
    bare.done("alter", "topic", name, APPROVED, "--add-config", "retention.ms=6000")
    state = json.loads((bare.cluster / "kafkaform.state.json").read_text())
    assert state["objects"] == []
    assert (bare.cluster.stat().st_mode & 0o777) == 0o700
    bare.done("alter", "topic", name, APPROVED, "--delete-config", "retention.ms")
    assert len({r["body"]["lineage"] for r in bare.records("intent")}) == 1
    assert len(bare.records("run_end")) == 2


def test_a_state_file_is_not_ignored(orders: tuple[Bare, str]) -> None:
    """Without a configuration the log has a place of its own, which the message names."""
    bare, name = orders
    line = ("alter", "topic", name, APPROVED, "--add-config", "retention.ms=6000")
    said = bare.fails(1, *line, "--state", "mine.json")
    assert "--state goes with the configuration of a folder" in said
    assert bare.folder.broker.cluster_id in said
    assert bare.folder.config("orders")["retention.ms"] == "604800000"


def test_what_is_not_set_is_said(orders: tuple[Bare, str]) -> None:
    """Removing what is not there sends nothing."""
    bare, name = orders
    said = bare.done("alter", "topic", name, APPROVED, "--delete-config", "retention.ms")
    assert "retention.ms is not set here" in said.text
    assert "There is nothing to change" in said.text
    assert not (bare.cluster / "kafkaform.audit.jsonl").exists()


def test_the_same_again_changes_nothing(orders: tuple[Bare, str]) -> None:
    """There is no second request."""
    bare, name = orders
    for _ in range(2):
        bare.done("alter", "topic", name, APPROVED, "--add-config", "retention.ms=6000")
    assert len(bare.records("intent")) == 1


@pytest.mark.parametrize(
    ("code", "arguments", "told"),
    [
        (1, ["--add-config", "retention.ms"], "character 1: a config without `=`"),
        (1, ["--add-config", "a=1", "--delete-config", "a"], "given twice"),
        (1, [], "there is nothing to change"),
        (8, ["--add-config", "retention.mss=1"], 'Did you mean "retention.ms"?'),
        (1, ["--add-config", "retention.ms=6000", "--no-input"], "--auto-approve"),
    ],
)
def test_what_is_refused(
    orders: tuple[Bare, str], code: int, arguments: list[str], told: str
) -> None:
    """Nothing is sent."""
    bare, name = orders
    said = bare.fails(code, "alter", "topic", name, *arguments)
    assert told in said
    assert not any(word in said for word in ("--expect", "--exclude", "kafkaform apply"))
    assert bare.folder.config("orders")["retention.ms"] == "604800000"


@pytest.mark.parametrize("entity", list(DRAFTS))
def test_who_is_not_named(here: Here, entity: str) -> None:
    """Only where there is a default entity is its flag advised."""
    said = here.fails("alter", entity, "--add-config", "a=1", "--bootstrap-server=127.0.0.1:1")
    command = get_commands().commands["alter"].commands[entity]
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert (f"no {entity} is named" if "--entity-default" in flags else "Missing argument") in said
    assert ("--entity-default" in said) == ("--entity-default" in flags)


@pytest.mark.parametrize("value", ["0", "-1", "many", "NaN", "Infinity"])
def test_a_limit_that_is_none(value: str) -> None:
    """How a limit is lifted is said in flags: there is no config to leave it out of."""
    with pytest.raises(UsageError) as caught:
        make_drafts(read_edit("user", ["ci"], [f"producer_byte_rate={value}"], []))
    assert "character 1: producer_byte_rate is not a number above 0" in caught.value.message
    assert "--delete-config producer_byte_rate removes it" in caught.value.advice


def test_a_topic_is_never_created(bare: Bare) -> None:
    """A name that does not exist is a fault, whoever may create topics."""
    name = f"{bare.folder.prefix}new"
    said = bare.fails(1, "alter", "topic", name, APPROVED, "--add-config", "retention.ms=6000")
    assert f'there is no topic "{name}"' in said
    assert bare.folder.topics() == {}


def test_a_user_without_rights(orders: tuple[Bare, str], stranger: Login) -> None:
    """The missing right is named, and nothing is sent."""
    bare, name = orders
    said = bare.fails(
        1, "alter", "topic", name, APPROVED, "--add-config", "retention.ms=6000", user=stranger
    )
    assert f"Describe on Topic {name} is missing" in said


def test_a_question_is_asked(orders: tuple[Bare, str]) -> None:
    """At a terminal `yes` applies and anything else does not."""
    bare, name = orders
    line = ["alter", "topic", name, "--add-config", "retention.ms=7000", "--command-config"]
    for answer, code in (("no", 1), ("yes", 0)):
        terminal = Terminal(bare.folder.path, [*line, str(bare.config)])
        terminal.wait_for('Only "yes" is accepted: ')
        terminal.type(f"{answer}\n")
        assert terminal.end() == code
    assert bare.folder.config("orders")["retention.ms"] == "7000"


def test_an_open_intent_is_recovered_by_the_next_alter(orders: tuple[Bare, str]) -> None:
    """A run that was killed between intent and outcome is closed by reading."""
    bare, name = orders
    bare.done("alter", "topic", name, APPROVED, "--add-config", "retention.ms=6000")
    log = bare.cluster / "kafkaform.audit.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    log.write_bytes(b"".join(lines[: kinds.index("intent") + 1]))
    (bare.cluster / "kafkaform.state.json").unlink()
    said = bare.done("alter", "topic", name, APPROVED, "--add-config", "segment.ms=70000")
    assert "Recovered" in said.err
    assert [r["body"]["outcome"] for r in bare.records("recover")] == ["applied"]


def test_one_at_a_time(orders: tuple[Bare, str]) -> None:
    """A second alter of the same cluster is turned away while one waits for an answer."""
    bare, name = orders
    line = ["alter", "topic", name, "--add-config", "retention.ms=6000"]
    terminal = Terminal(bare.folder.path, [*line, "--command-config", str(bare.config)])
    terminal.wait_for('Only "yes" is accepted: ')
    assert "is locked by" in bare.fails(7, *line, APPROVED)
    terminal.type("no\n")
    terminal.end()


def test_preferred_leaders(orders: tuple[Bare, str]) -> None:
    """What leads already is left alone, and flags are not mixed; nothing is created."""
    bare, name = orders
    line = ["alter", "topic", name, "--elect-preferred"]
    said = bare.done(*line, APPROVED)
    assert "There is nothing to change" in said.text
    assert "matches the configuration" not in said.text
    assert f"\n{name}" in said.out or f" {name}" in said.out
    assert not (bare.cluster / "kafkaform.audit.jsonl").exists()
    assert "cannot be combined with other options" in bare.fails(
        1, *line, "--delete-config", "retention.ms"
    )
    missing = bare.fails(1, "alter", "topic", f"{name}x", *line[3:], APPROVED)
    assert f'no topic "{name}x"' in missing


# ── nothing is sent ─────────────────────────────────────────────────────────────────────


def test_a_dry_run_shows_the_plan_and_how_it_was_checked(orders: tuple[Bare, str]) -> None:
    """--validate sends nothing, takes no lock and writes no file, whatever else is given."""
    bare, name = orders
    line = ["alter", "topic", name, "--add-config", "retention.ms=6000", "--validate"]
    for more in ([], [APPROVED]):
        said = bare.done(*line, *more)
        assert "IncrementalAlterConfigs (the broker will check)" in said.out
        assert f'Dry run:\n  kafka_topic.alter["{name}"]: checked by the broker' in said.out
        assert "Nothing was sent." in said.err and "CONFIGS FOR" not in said.out
    assert not bare.home.exists()
    assert bare.folder.config("orders")["retention.ms"] == "604800000"
    events = bare.done(*line, "--json").lines
    (event,) = [item for item in events if item["type"] == "validation"]
    assert event["validation"]["evidence"] == "remote"


@pytest.mark.parametrize(
    ("code", "arguments", "told"),
    [
        (0, ["--delete-config", "retention.ms"], "There is nothing to change."),
        (8, ["--add-config", "retention.mss=1"], 'Did you mean "retention.ms"?'),
        (1, ["--add-config", "remote.storage.enable=true"], "was refused in the dry run"),
    ],
)
def test_what_a_dry_run_ends_with(
    orders: tuple[Bare, str], code: int, arguments: list[str], told: str
) -> None:
    """As an apply would end before it sends: blocked, refused by the broker, or nothing to do."""
    bare, name = orders
    said = bare.run("alter", "topic", name, "--validate", *arguments)
    assert said.code == code
    assert told in said.text


def test_a_dry_run_of_other_plans(folder: Folder) -> None:
    """It goes for every `alter`, in a folder too, whose state and log stay as they are."""
    folder.create("a")
    with folder.untouched():
        said = folder.done("alter", "topic", f"{folder.prefix}a", "--elect-preferred", "--validate")
        assert "There is nothing to change." in said.text
        limit = ("--add-config", "producer_byte_rate=1000", "--validate")
        said = folder.done("alter", "user", f"{folder.prefix}u", *limit)
        assert "Plan: 1 to add" in said.text and "checked by the broker" in said.text


# ── limits, users, brokers, the rest ────────────────────────────────────────────────────


def test_limits_of_users_and_clients(bare: Bare) -> None:
    """Each form of entity; the last limit that goes takes the entity with it."""
    user, limit = bare.folder.prefix + "user", "producer_byte_rate"
    forms: list[list[str]] = [
        ["user", user],
        ["user", user, "--client-id", "app"],
        ["user", user, "--client-default"],
        ["client", user],
    ]
    for form in forms:
        bare.done("alter", *form, APPROVED, "--add-config", f"{limit}=1000")
    found = bare.document("quotas", "--user", user)["quotas"]
    assert sorted(quota["source"] for quota in found) == [
        "Client of user",
        "Default client of user",
        "User",
    ]
    bare.done("alter", "user", user, APPROVED, "--add-config", "request_percentage=12.5")
    bare.done("alter", "user", user, APPROVED, "--delete-config", limit)
    (quota,) = [
        q for q in bare.document("quotas", "--user", user)["quotas"] if len(q["entity"]) < 2
    ]
    assert quota["config"] == {"request_percentage": 12.5}
    bare.done("alter", "user", user, APPROVED, "--delete-config", "request_percentage")
    for form in forms[1:]:
        bare.done("alter", *form, APPROVED, "--delete-config", limit)
    assert bare.document("quotas", "--user", user)["quotas"] == []


def test_an_empty_name_is_the_default_entity(bare: Bare) -> None:
    """KIP-248: `alter user ''` and `--entity-default` are one entity, and so are empty client
    ids; what has no default has no empty name."""
    limit = ("--add-config", "request_percentage=77", "--validate")
    for words, key in (
        (["user", ""], "user"),
        (["user", "--entity-default"], "user"),
        (["client", ""], "client-id"),
        (["ip", "", "--add-config", "connection_creation_rate=9", "--validate"], "ip"),
        (["user", "", "--client-id", ""], "user|client-id"),
        (["user", "u", "--client-id="], "user=u|client-id"),
        (["--entity-type=users", "--entity-name=", "--alter"], "user"),
    ):
        more = () if "--validate" in words else limit
        assert f'kafka_quota.alter["{key}"]' in bare.done("alter", *words, *more).out
    said = bare.done("alter", "broker", "", "--add-config", "log.cleaner.threads=2", "--validate")
    assert 'kafka_cluster_config.alter["default"]' in said.out
    for entity in ("topic", "group", "client-metrics"):
        said_no = bare.fails(1, "alter", entity, "", "--add-config", "a=1")
        assert f"no {entity} has an empty name" in said_no
    assert "empty name" in bare.fails(1, "alter", "topic", "", "--elect-preferred")


def test_the_default_entity_is_altered_and_told_alone(bare: Bare) -> None:
    """What is described afterwards is the default, and no user of that name."""
    key, user = "controller_mutation_rate", f"{bare.folder.prefix}u"
    try:
        bare.done("alter", "user", user, "--client-id=x", APPROVED, "--add-config", f"{key}=7000")
        said = bare.done(
            "alter", "user", user, "--client-id=", APPROVED, "--add-config", f"{key}=9000"
        )
        assert f'user "{user}", client-id default' in said.out
    finally:
        for client in ("x", ""):
            bare.done(
                "alter", "user", user, f"--client-id={client}", APPROVED, "--delete-config", key
            )


def test_kafkas_own_options(orders: tuple[Bare, str]) -> None:
    """`kafkaform alter` with the options of kafka-configs.sh changes the same object."""
    bare, name = orders
    said = bare.done(
        "alter", "--alter", "--entity-type", "topics", "--entity-name", name, "--force",
        "--add-config", "retention.ms=6000",
    )  # fmt: skip
    assert "1 changed" in said.text
    assert bare.folder.config("orders")["retention.ms"] == "6000"


def test_a_password_comes_from_the_environment(bare: Bare) -> None:
    """A credential is made, changed and removed; its password is in no file and no output."""
    user = bare.folder.prefix + "scram"
    bare.folder.monkeypatch.setenv("NEW_PASSWORD", PASSWORD)
    texts = []
    for value in ("SCRAM-SHA-256=[iterations=8192,password=env:NEW_PASSWORD]",
                  "SCRAM-SHA-256=[password=env:NEW_PASSWORD]"):  # fmt: skip
        texts.append(bare.done("alter", "user", user, APPROVED, "--add-config", value).text)
        (found,) = bare.document("users", "--name", user)["users"]
        assert found["credentials"] == [{"mechanism": "SCRAM-SHA-256", "iterations": 8192}]
    bare.done("alter", "user", user, APPROVED, "--delete-config", "SCRAM-SHA-256")
    assert bare.document("users", "--name", user)["users"] == []
    files = [path.read_text() for path in bare.home.rglob("*") if path.is_file()]
    assert not any(PASSWORD in text for text in (*texts, *files))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (f"[iterations=8192,password={PASSWORD}]", "password=env:NAME"),
        ("[iterations=8192]", "password=env:NAME"),
        ("[rounds=1,password=env:X]", "has no rounds"),
        ("[iterations=many,password=env:X]", "iterations is not a number"),
        ("[password=env:KF_NOT_SET]", "KF_NOT_SET"),
    ],
)
def test_passwords_on_the_command_line_are_refused(bare: Bare, value: str, told: str) -> None:
    """And not repeated."""
    user = bare.folder.prefix + "scram"
    said = bare.fails(1, "alter", "user", user, APPROVED, "--add-config", f"SCRAM-SHA-512={value}")
    assert told in said
    assert PASSWORD not in said


def test_configs_of_brokers_groups_and_subscriptions(bare: Bare) -> None:
    """One broker, all brokers, a group and a metrics subscription."""
    name = bare.folder.prefix + "x"
    changes = [
        (["broker", "1"], "log.cleaner.io.buffer.load.factor=0.8", "0.8", "brokers"),
        (["broker", "--entity-default"], "log.cleaner.backoff.ms=14000", "14 s (14000)", "brokers"),
        (["group", name], "consumer.session.timeout.ms=50000", "50 s (50000)", "groups"),
        (["client-metrics", name], "interval.ms=10000", "10 s (10000)", "client-metrics"),
    ]
    for who, config, value, kind in changes:
        key, _, _ = config.partition("=")
        said = bare.done("alter", *who, APPROVED, "--add-config", config)
        assert f"{key}  = {value}" in said.out, kind
        said = bare.done("alter", *who, APPROVED, "--delete-config", key)
        after = said.out.split("CONFIGS FOR")[1]
        assert f"{key}  = {value}" not in after
        assert len(after.splitlines()) < 20, kind
        assert "not yet visible" not in said.err


def test_a_read_only_config_needs_a_restart(bare: Bare) -> None:
    """It is blocked before anything is sent."""
    said = bare.fails(8, "alter", "broker", "1", APPROVED, "--add-config", "log.dirs=/x")
    assert "restart" in said


# ── in a configuration folder ───────────────────────────────────────────────────────────


def test_a_managed_topic_is_refused(folder: Folder) -> None:
    """The block is named, declared or only recorded."""
    folder.declare("a")
    folder.done("apply", APPROVED)
    line = ["alter", "topic", f"{folder.prefix}a", APPROVED, "--add-config", "retention.ms=6000"]
    said = folder.fails(8, *line)
    assert "kafka_topic.a (topics.kf.hcl:1:" in said
    folder.declare()
    assert "the state has it as kafka_topic.a" in folder.fails(8, *line)


def test_an_unmanaged_topic_is_altered_under_the_folders_lock_and_log(folder: Folder) -> None:
    """The folder's log has it, its state stays as it was, and the next plan has nothing to do."""
    folder.declare("a")
    folder.done("apply", APPROVED)
    before = json.loads((folder.path / "kafkaform.state.json").read_text())["objects"]
    folder.create("other")
    other = f"{folder.prefix}other"
    folder.done("alter", "topic", other, APPROVED, "--add-config", "retention.ms=6000")
    assert folder.config("other")["retention.ms"] == "6000"
    assert json.loads((folder.path / "kafkaform.state.json").read_text())["objects"] == before
    assert folder.records("intent")[-1]["body"]["key"] == other
    assert folder.done("audit", "verify").code == 0
    assert folder.run("plan", "-detailed-exitcode").code == 0


def test_json_lines(folder: Folder) -> None:
    """A program reads the run, then the document of `describe`."""
    folder.create("a")
    name = f"{folder.prefix}a"
    lines = folder.done(
        "alter", "topic", name, APPROVED, "--json", "--add-config", "retention.ms=6000"
    ).lines
    assert "change_summary" in [line.get("type") for line in lines]
    (entity,) = lines[-1]["entities"]
    assert {"retention.ms": "6000"}.items() <= {
        item["name"]: item["value"] for item in entity["configs"]
    }.items()


def test_every_entity_has_the_flags_of_an_apply() -> None:
    """How it is asked, locked and shown is the same everywhere."""
    wanted = {"auto_approve", "no_wait", "state", "lock_timeout", "json"}
    for name, command in get_commands().commands["alter"].commands.items():
        # Only brokers can be named by flags alone.
        of_kafka = set() if name in ("connector", "schema") else {"bootstrap_server"}
        assert wanted | of_kafka <= {parameter.name for parameter in command.params}, name


# ── undo ────────────────────────────────────────────────────────────────────────────────


def test_an_alter_is_undone_with_the_flags_that_named_its_cluster(orders: tuple[Bare, str]) -> None:
    """Configs and quotas that were there before come back, all others go; each run by its id."""
    bare, name = orders
    user = f"{bare.folder.prefix}ann"
    bare.folder.alter("orders", "max.message.bytes", "2000")
    values = "max.message.bytes=3000,retention.ms=6000"
    bare.done("alter", "topic", name, APPROVED, "--add-config", values)
    (first,) = {r["run"] for r in bare.records("run_begin")}
    for rates in ("producer_byte_rate=500", "producer_byte_rate=1000,consumer_byte_rate=9"):
        bare.done("alter", "user", user, APPROVED, "--add-config", rates)
    listed = bare.done("undo").out
    assert first in listed and "alter" in listed
    assert "Not undone" not in bare.done("undo", "--last", APPROVED).text
    (quota,) = [r["body"] for r in bare.records("outcome")[-1:]]
    assert {(p["path"], p["before"], p["after"]) for p in quota["paths"]} == {
        ("config.producer_byte_rate", 1000, 500),
        ("config.consumer_byte_rate", 9, None),
    }
    assert "Not undone" not in bare.done("undo", first, APPROVED).text
    config = bare.folder.config("orders")
    assert config["max.message.bytes"] == "2000" and config["retention.ms"] != "6000"
    assert "There is nothing to change." in bare.done("undo", first, APPROVED).text
    begins = [(r["body"]["command"], r["body"].get("undoes")) for r in bare.records("run_begin")]
    assert begins[-1] == ("undo", first)
