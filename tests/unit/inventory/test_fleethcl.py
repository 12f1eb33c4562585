"""fleet.hcl: everything that it can say is read and lands; every fault has a place and advice."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import fields

from kafkaform.apply.secrets import resolve_instance_secrets
from kafkaform.core.canonical import dumps
from kafkaform.core.errors import ConfigurationError, StorageError, UsageError
from kafkaform.core.landing import FORMAT
from kafkaform.core.value import SecretRef
from kafkaform.fleet.datasets import policy_conditions
from kafkaform.fleet.landed.register import (
    FleetSettings,
    NamingRule,
    Owner,
    PolicyRule,
    Rates,
    Register,
    RegisteredCluster,
    RegisteredState,
    RegisteredWaiver,
    read_register,
)
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet.entries import BLOCKS, WAIVER
from kafkaform.workflow.fleet.register_file import Fleet, read_fleet
from kafkaform.workflow.fleet.snapshot import add_identities, make_document, run_secret_commands

EXAMPLE = Path(__file__).parents[3] / "examples/fleet/fleet.hcl"
EVERYTHING = """
variable "servers" {
  type = list(string)
}
variable "secret" {
  type      = string
  sensitive = true
}
fleet {
  root         = "data"
  stale_after  = "2d"
  skew         = "90s"
  grace_days   = 30
  max_corrupt  = 0.25
  short_prefix = 5
  principals   = ["User:a", upper("user:b")]
}
cluster "eu" {
  env             = "prod"
  region          = "eu-1"
  owner           = "platform"
  super_users     = ["User:root"]
  allow_if_no_acl = false
  limit_replicas  = 100
  connection {
    bootstrap_servers = var.servers
    sasl_username     = "ci"
    sasl_password     = var.secret
    authorizer {
      super_users = ["User:root"]
    }
  }
}
cluster "none" {
  super_users = []
  connection {
    bootstrap_servers = ["b:2"]
    sasl_username     = "ci"
    sasl_password     = secret_env("FLEET_PASSWORD")
  }
}
state "far" {
  location = "s3://bucket/prod"
  owner    = "orders"
}
state "near" {
  location  = "states/x.json"
  folder    = "../payments"
  var_files = ["prod.kfvars.hcl"]
  vars      = { text = "a", number = 3, list = ["${"$"}{x}", true], map = { a = 1.5 } }
}
owner "Orders & Co." {
  topics     = ["orders.*"]
  principals = ["User:orders"]
}
owner "empty" {}
rates {
  currency  = "EUR"
  topic     = 1
  partition = 0.5
  replica   = 0
  gigabyte  = 0.1

  ingress_gigabyte = 0.05
  egress_gigabyte  = 0.07
}
rule "r1" {
  severity = "high"
  kind     = "kafka_*"
  where    = "attrs['x'] = '1'"
  message  = "No."
  source   = "desired"
  owner    = "sec"
  waiver {
    cluster = "eu"
    key     = "k*"
    until   = "2026-12-31"
    reason  = "why"
  }
  waiver {
    until  = "2027-01-01"
    reason = "also"
  }
}
rule "r2" {
  severity = "low"
  kind     = "kafka_topic"
  where    = "true"
  message  = "m"
}
naming {
  kind    = "kafka_topic"
  pattern = "[a-z]+"
}
naming {
  kind    = "kafka_topic"
  pattern = "\\\\p{L}+"
  cluster = "eu*"
}
keep {
  topic   = "yearly.*"
  cluster = "eu"
  until   = "2026-12-31"
  reason  = "Read in January."
}
"""
REGISTER = Register(
    clusters=(
        RegisteredCluster("eu", None, "prod", "eu-1", "platform", ("User:root",), False, 100),
        RegisteredCluster("none", super_users=()),
    ),
    states=(RegisteredState("far", owner="orders"), RegisteredState("near", folder="../payments")),
    owners=(Owner("Orders & Co.", ("orders.*",), ("User:orders",)), Owner("empty")),
    principals=("User:a", "USER:B"),
    rates=Rates("EUR", 1, 0.5, 0, 0.1, ingress_gigabyte=0.05, egress_gigabyte=0.07),
    rules=(
        PolicyRule(
            *("r1", "high", "kafka_*", "attrs['x'] = '1'", "No.", "desired", "sec"),
            waivers=(
                RegisteredWaiver(date(2026, 12, 31), "why", "eu", "k*"),
                RegisteredWaiver(date(2027, 1, 1), "also"),
            ),
        ),
        PolicyRule("r2", "low", "kafka_topic", "true", "m"),
    ),
    naming=(NamingRule("kafka_topic", "[a-z]+"), NamingRule("kafka_topic", "\\p{L}+", "eu*")),
    settings=FleetSettings(48.0, 90.0, 30, 0.25, 5),
    keeps=(RegisteredWaiver(date(2026, 12, 31), "Read in January.", "eu", "yearly.*"),),
)


REGISTRY = """cluster "r" {{
  provider = "schema_registry"
  kafka_cluster = "{}"
  connection {{
    url = "http://r:8081"
  }}
}}
"""
KAFKA = """cluster "eu" {
  connection {
    bootstrap_servers = ["b:1"]
  }
}
"""
RULE = """rule "r" {{
  severity = "low"
  kind     = "{}"
  where    = "{}"
  message  = "m"
}}
"""
NAMING = """naming {{
  kind    = "{}"
  pattern = "{}"
}}
"""


def fleet(tmp_path: Path, text: str, *var: str) -> Fleet:
    path = tmp_path / "fleet.hcl"
    path.write_text(text, encoding="utf-8")
    return read_fleet(path, Inputs.read(var))


def faults(tmp_path: Path, text: str) -> list[str]:
    """Each with its line, what it says, and what to do, if that is told."""
    with pytest.raises(ConfigurationError) as told:
        fleet(tmp_path, text)
    found = told.value.diagnostics
    assert all(d.range is not None and d.range.file == "fleet.hcl" for d in found)
    return [f"{d.range and d.range.line}: {d.summary}. {d.detail} {d.advice}" for d in found]


GIVEN = ('servers=["a:1"]', "secret=Canary-secret")


def test_everything_is_read(tmp_path: Path) -> None:
    """All blocks and arguments, with functions and variables."""
    found = fleet(tmp_path, EVERYTHING, *GIVEN)
    assert found.register == REGISTER
    assert found.root == str(tmp_path / "data")
    far, near = found.states
    assert (far.location, far.folder) == ("s3://bucket/prod", None)
    assert near.location == str(tmp_path / "states/x.json")
    assert near.folder == tmp_path / "../payments"
    assert near.var_files == ("prod.kfvars.hcl",)
    assert near.variables == ('list=["$${x}",true]', 'map={"a":1.5}', "number=3", "text=a")
    eu, none = found.clusters
    assert eu.settings.instance == "eu"
    assert eu.settings.config["bootstrap_servers"] == ("a:1",)
    assert none.settings.config["sasl_password"] == SecretRef("env", "FLEET_PASSWORD")


def test_the_register_lands_and_is_read(tmp_path: Path) -> None:
    """What lands is what the pipeline reads, member by member, with what was found out."""
    found = fleet(tmp_path, EVERYTHING, *GIVEN).register
    made = add_identities(found, {"eu": "cluster-1"}, {"far": "lin"})
    text = dumps(make_document(made))
    assert read_register(text) == made
    assert made.clusters[0].cluster_id == "cluster-1" and made.states[0].lineage == "lin"
    assert "Canary" not in text and "FLEET_PASSWORD" not in text
    assert read_register(dumps(make_document(Register()))) == Register()


def test_a_register_of_an_earlier_version_keeps_no_topic() -> None:
    """It has no such member. Any other member that is missing is a fault."""
    document = make_document(Register())
    del document["keeps"]
    assert read_register(dumps(document)) == Register()
    del document["owners"]
    with pytest.raises(StorageError, match="lacks owners"):
        read_register(dumps(document))


def test_a_registry_says_whose_topics_it_is_about(tmp_path: Path) -> None:
    """It lands, and the block of the Kafka cluster may come later."""
    register = fleet(tmp_path, REGISTRY.format("eu") + KAFKA).register
    assert [c.kafka_cluster for c in register.clusters] == ["eu", None]
    assert make_document(register)["clusters"][0]["kafka_cluster"] == "eu"


def test_every_member_of_the_register_can_be_said() -> None:
    """A member that is added to the register is in the test above, other than its default."""
    whole = (REGISTER, REGISTER.clusters[0], REGISTER.owners[0], REGISTER.rates, REGISTER.settings)
    whole = (*whole, REGISTER.rules[0], REGISTER.rules[0].waivers[0], REGISTER.naming[1])
    for thing in whole:
        assert thing is not None
        for member in fields(thing):
            if member.name not in ("cluster_id", "lineage", "kafka_cluster"):
                assert getattr(thing, member.name) != member.default, (thing, member.name)


def test_a_later_format_is_refused() -> None:
    """An old version does not misread what a new one wrote."""
    with pytest.raises(Exception, match="format"):
        read_register(dumps({**make_document(Register()), "format": FORMAT + 1}))


def test_secrets_are_found_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of variables and of the environment; one that is missing is named, with what to do."""
    found = fleet(tmp_path, EVERYTHING, *GIVEN)
    eu, none = found.clusters
    secrets = resolve_instance_secrets(eu.settings, found.find_secrets)
    assert [one.reveal() for one in secrets.values()] == ["Canary-secret"]
    assert "Canary" not in repr(found)
    monkeypatch.delenv("FLEET_PASSWORD", raising=False)
    with pytest.raises(ConfigurationError) as told:
        resolve_instance_secrets(none.settings, found.find_secrets)
    assert "FLEET_PASSWORD" in told.value.diagnostics[0].advice


def test_variables_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As everywhere; without a value they are a fault."""
    monkeypatch.setenv("KF_VAR_servers", '["env:1"]')
    monkeypatch.setenv("KF_VAR_secret", "x")
    found = fleet(tmp_path, EVERYTHING)
    assert found.clusters[0].settings.config["bootstrap_servers"] == ("env:1",)
    monkeypatch.delenv("KF_VAR_secret")
    assert "KF_VAR_secret" in faults(tmp_path, EVERYTHING)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", '1: "x" is outside'),
        ('clutser "a" {}', 'Did you mean "cluster"'),
        ("cluster {\n}", "1: A cluster block needs the name"),
        ('fleet "x" {\n}', "1: A fleet block has no labels"),
        ('cluster "../x" {\n}', '1: "../x" is not a name'),
        ('cluster "a" {\n}', '1: cluster "a" needs a connection'),
        ('cluster "a" {\n  connection {\n  }\n}', '2: connection needs "bootstrap_servers"'),
        (
            'cluster "a" {\n  connection {\n    bootstrap_servers = ["x:1"]\n'
            '    sasl_password = "plain"\n  }\n}',
            '4: "sasl_password" needs a reference to a secret',
        ),
        ('cluster "a" {\n  regoin = "x"\n}', 'Did you mean "region"'),
        ('cluster "a" {\n  region = var.nope\n}', '2: There is no variable "nope"'),
        ('cluster "a" {\n  limit_replicas = 1.5\n}', '2: "limit_replicas" must be a whole'),
        ('state "s" {\n}', '1: state "s" has no place'),
        ('state "s" {\n  location = "x"\n  vars = [1]\n}', '3: "vars" must be an object'),
        (
            'state "s" {\n  location = "x"\n  vars = { a = secret_env("X") }\n}',
            '3: "vars" cannot contain a secret',
        ),
        ('fleet {\n  stale_after = "soon"\n}', "2: 'soon' is not a duration"),
        ("fleet {\n  max_corrupt = 2\n}", "2: 2 is not a share"),
        ("fleet {\n  grace_days = -1\n}", "2: -1 is less than 0"),
        ("fleet {\n}\nfleet {\n}", "3: fleet occurs twice"),
        ('owner "a" {\n}\nowner "a" {\n}', '3: owner "a" occurs twice'),
        ("rates {\n  topic = 1\n}", '1: rates needs "currency"'),
        ('rule "r" {\n  severity = "bad"\n}', '2: "severity" must be one of'),
        ('rule "r" {\n  source = "past"\n}', '2: "source" must be one of live, desired'),
        ('rule "r" {\n  waiver {\n    until = "soon"\n  }\n}', "3: 'soon' is not a date"),
        (RULE.format("topics", "true"), '3: No object has the kind "topics"'),
        (RULE.format("kafka_topics", "true"), 'Did you mean "kafka_topic"?'),
        (
            RULE.format("topic_*", "true").replace("message", 'source = "desired"\nmessage'),
            '3: No object has the kind "topic_*"',
        ),
        (RULE.format("*", "attrs['x'"), '4: "where" cannot be read: ] is missing at character 10'),
        (RULE.format("*", "owners = 'a'"), 'character 1.  Did you mean "owner"'),
        (RULE.format("*", "key rlike '('"), "the pattern ( cannot be read"),
        (RULE.format("*", "key"), "docs/fleet/register.md explains"),
        (2 * RULE.format("*", "true"), 'rule "r" occurs twice'),
        (NAMING.format("k", "("), "3: '(' is not a regular expression: it cannot be read"),
        (NAMING.format("k", "a"), '2: No object has the kind "k"'),
        (NAMING.format("kafka_*", "a"), '2: No object has the kind "kafka_*"'),
        (REGISTRY.format("kafka"), '3: "kafka" is no Kafka cluster of this fleet'),
        (REGISTRY.format("r"), '3: "r" is no Kafka cluster of this fleet'),
        (REGISTRY.format("r") + KAFKA, "There are eu."),
        (KAFKA.replace("connection", 'kafka_cluster = "eu"\nconnection'), "has no kafka_cluster"),
        (NAMING.format("kafka_topic", "(?P<a>x)"), "has (?P, which Java reads differently"),
        (NAMING.format("kafka_topic", r"\\p{Letter}"), "is not a regular"),
        (NAMING.format("kafka_topic", r"\\p{Lx}"), "unknown property"),
        ("fleet {\n  root = \n}", "2: "),
    ],
)
def test_faults_have_a_place(tmp_path: Path, text: str, words: str) -> None:
    """What, where, and what to do."""
    assert any(words in fault for fault in faults(tmp_path, text)), faults(tmp_path, text)


def test_all_faults_at_once(tmp_path: Path) -> None:
    """In the order of the file."""
    text = 'fleet {\n  skew = "x"\n}\ncluster "a" {\n}\nstate "s" {\n}\nbogus {\n}\n'
    assert [fault.partition(":")[0] for fault in faults(tmp_path, text)] == ["2", "4", "6", "8"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Says what to write."""
    with pytest.raises(UsageError, match="cannot be read") as told:
        read_fleet(tmp_path / "fleet.hcl")
    assert told.value.advice


def test_the_example_is_sound() -> None:
    """The one that the documentation leads to; the folders that it names are there."""
    found = read_fleet(EXAMPLE)
    assert found.clusters and found.states and found.register.rules
    for state in found.states:
        assert state.folder is None or list(state.folder.glob("*.kf.hcl")), state.name


def test_warnings_are_shown_and_nothing_loads_spark(tmp_path: Path) -> None:
    """A secret on the command line, as typed: the snapshot is taken, and says so on stderr."""
    text = 'variable "s" {\n  type = string\n  sensitive = true\n}\nfleet {\n  root = "r"\n}\n'
    assert fleet(tmp_path, text, "s=Canary").warnings
    code = (
        "import atexit, runpy, sys; sys.argv[0] = 'kafkaform'; "
        "atexit.register(lambda: print([m for m in ('pyspark', 'pandas') if m in sys.modules])); "
        "runpy.run_module('kafkaform', run_name='__main__')"
    )
    words = ("fleet", "snapshot", "--file", str(tmp_path / "fleet.hcl"), "--var", "s=Canary")
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["[]"]), done.stderr
    assert "Warning: --var contains" in done.stderr and "Canary" not in done.stderr
    assert list((tmp_path / "r/landing/register").iterdir())


def test_the_documentation_names_everything() -> None:
    """Each block and argument has its place in docs/fleet/register.md."""
    text = (EXAMPLE.parents[2] / "docs/fleet/register.md").read_text(encoding="utf-8")
    for name, block in {**BLOCKS, "waiver": WAIVER}.items():
        assert f"## {name}" in text or f"`{name} {{" in text, name
        for argument in block.attributes:
            assert f"`{argument}`" in text, (name, argument)
    for word in (
        *policy_conditions.COLUMNS,
        *policy_conditions.CASTS,
        *policy_conditions.COMPARISONS,
    ):
        assert f"`{word}`" in text, word
    for word in policy_conditions.FUNCTIONS:
        assert f"`{word}`" in text or f"`{word}(" in text, word


def test_the_rule_of_the_documentation_is_sound(tmp_path: Path) -> None:
    text = (EXAMPLE.parents[2] / "docs/fleet/register.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```fleet.hcl\n(.*?)```", text, re.DOTALL)
    assert len(fleet(tmp_path, example).register.rules) == 1


def test_a_command_for_many_clusters_runs_once(tmp_path: Path) -> None:
    """Before the threads start that read the clusters: only the main one hears a signal."""
    asks = 'sasl_password = secret_command(["sh", "-c", "echo ran >>ran; echo hush-hush"])'
    blocks = [
        f'cluster "{name}" {{\n  connection {{\n    bootstrap_servers = ["{name}:1"]\n'
        f'    sasl_username = "ci"\n    {asks}\n  }}\n}}\n'
        for name in ("one", "two")
    ]
    found = fleet(tmp_path, "".join(blocks))
    run_secret_commands(found, found.clusters)
    log = tmp_path / "ran"
    assert log.read_text() == "ran\n"
    for cluster in found.clusters:
        secrets = resolve_instance_secrets(cluster.settings, found.find_secrets)
        assert [one.reveal() for one in secrets.values()] == ["hush-hush"]
    assert log.read_text() == "ran\n"


def test_a_file_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    """As in a configuration."""
    (tmp_path / "pw").write_text("hush")
    text = (
        'cluster "one" {\n  connection {\n    bootstrap_servers = ["one:1"]\n'
        '    sasl_username = "ci"\n    sasl_password = secret_file("pw")\n  }\n}\n'
    )
    for mode, count in ((0o644, 1), (0o600, 0)):
        (tmp_path / "pw").chmod(mode)
        assert len(fleet(tmp_path, text).warnings) == count
