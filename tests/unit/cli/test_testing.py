"""`kafkaform test`: runs pass, fail, break and are skipped, and nothing outside is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ...kit.commands.here import Here

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MAIN = """
provider "kafka" {}

variable "environment" {
  type    = string
  default = "prod"

  validation {
    condition     = contains(["dev", "prod"], var.environment)
    error_message = "The environment is dev or prod."
  }
}

variable "partitions" {
  type    = number
  default = 6
}

locals {
  name = "${var.environment}.orders"
}

resource "kafka_topic" "orders" {
  name       = local.name
  partitions = var.partitions

  lifecycle {
    precondition {
      condition     = var.partitions != 13
      error_message = "Nobody wants 13."
    }
  }
}

check "even" {
  assert {
    condition     = var.partitions % 2 == 0
    error_message = "The number of partitions is even."
  }
}

output "id" {
  value = kafka_topic.orders.topic_id
}
"""
ASSERT = """
  assert {{
    condition     = {}
    error_message = "It must hold."
  }}
"""
OK = ASSERT.format("plan.counts.add == 1")


def run_block(name: str, *lines: str) -> str:
    """A run with these lines."""
    return f'run "{name}" {{\n' + "\n".join(lines) + "\n}\n"


def holds(condition: str) -> str:
    return ASSERT.format(condition)


@pytest.fixture
def shop(here: Here) -> Here:
    """A folder with a configuration."""
    here.write("main.kf.hcl", MAIN)
    return here


def status_of(shop: Here, *runs: str, code: int = 0) -> dict[str, str]:
    """Run these blocks as a test file; name -> status of each run."""
    shop.write("a.kftest.hcl", "".join(runs))
    said = shop.run("test", "--json")
    assert said.code == code, said.text
    results = [line["test_run"] for line in said.lines if line["type"] == "test_run"]
    return {one["run"]: one["status"] for one in results}


# ── what runs do ────────────────────────────────────────────────────────────────────────


def test_a_plan_changes_nothing_and_an_apply_prepares_the_next_run(shop: Here) -> None:
    """Runs share a cluster and a state, in the order of the file."""
    found = status_of(
        shop,
        run_block("plan", OK),
        run_block("still_new", OK),
        run_block("apply", 'command = "apply"', OK),
        run_block("idle", holds("length(plan.changes) == 0 && plan.counts.unchanged == 1")),
        run_block("idle_apply", 'command = "apply"', holds("length(plan.changes) == 0")),
        run_block("more", "variables {\n partitions = 8\n}", holds("plan.counts.change == 1")),
        run_block(
            "destroy", 'plan_options {\n mode = "destroy"\n}', holds("plan.counts.destroy == 1")
        ),
    )
    assert set(found.values()) == {"pass"}


def test_an_assertion_sees_plan_outputs_and_declared_values(shop: Here) -> None:
    """Everything that docs/testing.md lists has the value that it says."""
    change = 'plan.changes["kafka_topic.orders"]'
    found = status_of(
        shop,
        run_block(
            "create",
            'command = "apply"',
            holds('output.id != "" && local.name == "prod.orders" && var.partitions == 6'),
            holds("kafka_topic.orders.partitions == 6 && kafka_topic.orders.topic_id == output.id"),
            holds(f'{change}.action == "create" && {change}.before == null'),
            holds(f'{change}.type == "kafka_topic" && {change}.key == "prod.orders"'),
            holds(f'{change}.instance == "kafka" && {change}.blocked == null'),
            holds(f"{change}.after.partitions == 6 && !{change}.adopts"),
            holds(f"{change}.harms == [] && {change}.drift == [] && {change}.findings == []"),
            holds(
                "plan.counts == { add = 1, change = 0, destroy = 0, imports = 0, adopt = 0, "
                "forget = 0, blocked = 0, drift = 0, unchanged = 0 }"
            ),
        ),
    )
    assert found == {"create": "pass"}


def test_a_failed_assertion_shows_its_place_and_its_values(shop: Here) -> None:
    """The message of the file, the line, and what the parts of the condition are."""
    shop.write("a.kftest.hcl", run_block("a", holds("length(plan.changes) == var.partitions")))
    said = shop.run("test")
    assert said.code == 1
    assert 'run "a"... fail' in said.text
    assert "Error: The assertion is not met on a.kftest.hcl:4:21" in said.text
    assert "It must hold." in said.text
    assert "length(plan.changes) is 1" in said.text
    assert "var.partitions is 6" in said.text
    assert said.text.endswith("a.kftest.hcl... fail Failure! 0 passed, 1 failed.")


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ('local.name == "x"', 'local.name is "prod.orders"'),
        ("{ a = local.name, b = [] } == { c = 1 }", '{ "a" = "prod.orders", "b" = [] }'),
        ('[local.name, "a\\n"] == [1]', 'is ["prod.orders", "a\\n"]'),
        ("!(var.partitions > 5)", "var.partitions is 6"),
        ("alltrue([for k, c in plan.changes : c.adopts])", '{ "kafka_topic.orders" = {'),
        ('plan.changes["kafka_topic.orders"].blocked != null', "is null"),
        ("var.partitions == 5 || length(local.name) == 2", "length(local.name) is 11"),
    ],
)
def test_the_values_of_a_condition_fit_on_a_line(shop: Here, condition: str, told: str) -> None:
    """Collections are written as in a configuration, and constants are left out."""
    shop.write("a.kftest.hcl", run_block("a", holds(condition)))
    said = shop.run("test")
    assert said.code == 1
    assert told in said.text
    assert "5 is 5" not in said.text


@pytest.mark.parametrize("asks", ['secret_env("NOT_SET")', 'secret_command(["not-there"])'])
def test_a_secret_is_not_shown_in_a_failed_assertion(shop: Here, asks: str) -> None:
    """The values of sensitive variables and the invented ones of secrets stay hidden."""
    shop.write(
        "secret.kf.hcl",
        'variable "token" {\n  type = string\n  sensitive = true\n}\n'
        'resource "kafka_user_scram_credential" "a" {\n  username = "a"\n'
        f'  scram_mechanism = "SCRAM-SHA-256"\n  password = {asks}\n}}\n',
    )
    shop.write(
        "a.kftest.hcl",
        'variables {\n  token = "hush-hush-hush"\n}\n'
        + run_block("a", 'command = "apply"', holds('var.token == "other"')),
    )
    said = shop.run("test", "--verbose", "--junit", "out.xml")
    assert said.code == 1
    everything = said.text + (shop.path / "out.xml").read_text()
    assert "hush-hush-hush" not in everything.replace('token = "hush-hush-hush"', "")
    assert "the simulated secret" not in everything
    assert "var.token is (sensitive value)" in said.text


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("output.nothing == 1", 'There is no output "nothing"'),
        ("kafka_topic.other.name == 1", 'There is no kafka_topic "other"'),
        ("plam.counts.add == 1", 'Nothing is named "plam" here'),
        ("plan.counts.added == 1", 'There is no attribute "added"'),
        ('plan.changes["kafka_topic.order"].action == ""', 'Did you mean "kafka_topic.orders"?'),
        ("plan.counts.add", "Expected true or false, got a number."),
        ('output.id == ""', "known only after the apply"),
    ],
)
def test_an_assertion_that_cannot_be_evaluated_fails(shop: Here, condition: str, told: str) -> None:
    """A wrong name or type is a failure with its place, and never a pass."""
    shop.write("a.kftest.hcl", run_block("a", holds(condition)))
    said = shop.run("test")
    assert said.code == 1
    assert told in said.text
    assert "a.kftest.hcl:4:" in said.text


# ── expected failures ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "block"),
    [
        ('environment = "qa"', "var.environment"),
        ('partitions = "many"', "var.partitions"),
        ("partitions = 13", "kafka_topic.orders"),
        ("partitions = 0", "kafka_topic.orders"),
        ("partitions = 7", "check.even"),
    ],
)
def test_an_expected_failure_passes_and_an_unexpected_one_does_not(
    shop: Here, values: str, block: str
) -> None:
    """Rules, refused values and checks can be expected; without that, they fail the run."""
    given = f"variables {{\n {values}\n}}"
    more = ", check.even" if "13" in values else ""
    assert status_of(shop, run_block("a", given, f"expect_failures = [{block}{more}]")) == {
        "a": "pass"
    }
    assert status_of(shop, run_block("a", given), code=1) == {"a": "error"}


def test_an_expected_failure_that_does_not_come_fails(shop: Here) -> None:
    """The run names the block that did not fail."""
    shop.write("a.kftest.hcl", run_block("a", "expect_failures = [check.even]"))
    said = shop.run("test")
    assert said.code == 1
    assert "check.even was expected to fail and did not" in said.text
    assert "a.kftest.hcl:2:20" in said.text


def test_a_blocked_change_can_be_expected_and_looked_at(shop: Here) -> None:
    """What the plan refuses to do is a failure of its resource, and the plan is there."""
    blocked = 'plan.changes["kafka_topic.orders"].blocked'
    fewer = "variables {\n partitions = 2\n}"
    create = run_block("create", 'command = "apply"')
    expected = "expect_failures = [kafka_topic.orders]"
    found = status_of(
        shop,
        create,
        run_block("a", fewer, expected, holds(f'{blocked}.kind == "impossible"')),
        run_block("b", 'command = "apply"', fewer, expected, holds(f"{blocked}.stops")),
        run_block("after", holds("length(plan.changes) == 0")),
    )
    assert set(found.values()) == {"pass"}
    assert status_of(shop, create, run_block("a", fewer), code=1)["a"] == "error"


def test_policies_of_the_configuration_judge_the_runs(shop: Here) -> None:
    """A change that a policy forbids is blocked, as in a plan, and others are not."""
    shop.write(
        "policies.kf.hcl",
        'policy "few" {\n  condition = change.after.partitions < 10\n  message = "too many"\n}\n',
    )
    blocked = 'plan.changes["kafka_topic.orders"].blocked'
    many = "variables {\n partitions = 10\n}"
    expected = "expect_failures = [kafka_topic.orders]"
    found = status_of(
        shop,
        run_block("many", many, expected, holds(f'{blocked}.kind == "policy"')),
        run_block("few", 'command = "apply"'),
    )
    assert set(found.values()) == {"pass"}


def test_a_run_can_take_live_values_into_the_state(shop: Here) -> None:
    """After a refresh-only apply, what somebody changed is no drift any more."""
    refresh = 'plan_options {\n mode = "refresh"\n}'
    found = status_of(
        shop,
        VALUES,
        run_block("create", 'command = "apply"'),
        run_block("refresh", 'command = "apply"', ORDERS.format(8), refresh),
        run_block("after", "variables {\n partitions = 8\n}", holds("plan.counts.change == 0")),
    )
    assert set(found.values()) == {"pass"}


def test_a_mistake_in_the_configuration_cannot_be_expected(shop: Here) -> None:
    """A misspelt name inside of the block must not let a test pass for the wrong reason."""
    shop.write("main.kf.hcl", MAIN.replace("= local.name", "= local.nmae"))
    run = run_block(
        "a", "variables {\n partitions = 13\n}", "expect_failures = [kafka_topic.orders]"
    )
    assert status_of(shop, run, code=1) == {"a": "error"}


# ── given objects ───────────────────────────────────────────────────────────────────────

ORDERS = 'given "kafka_topic" "o" {{\n name = "${{var.environment}}.orders"\n partitions = {}\n}}\n'
VALUES = 'variables {\n environment = "prod"\n}\n'


def test_given_objects_exist_before_the_first_run(shop: Here) -> None:
    """A topic of somebody else is in the way, until it is adopted."""
    found = status_of(
        shop,
        VALUES,
        ORDERS.format(6),
        run_block("left_alone", "expect_failures = [kafka_topic.orders]"),
        run_block(
            "adopt",
            'command = "apply"',
            'plan_options {\n adopt = ["kafka_topic.*"]\n}',
            holds("plan.counts.adopt == 1 && plan.counts.add == 0"),
        ),
        run_block("done", holds("length(plan.changes) == 0")),
    )
    assert set(found.values()) == {"pass"}


def test_a_given_object_of_a_run_changes_what_is_there(shop: Here) -> None:
    """Somebody adds partitions and a config by hand: the plan shows drift."""
    config = ORDERS.format(9).replace("}\n", 'config = { "retention.ms" = "1000" }\n}\n')
    change = 'plan.changes["kafka_topic.orders"]'
    found = status_of(
        shop,
        VALUES,
        run_block("create", 'command = "apply"'),
        run_block(
            "drift",
            config,
            "variables {\n partitions = 10\n}",
            holds(f'{change}.drift[*].path == ["config.retention.ms", "partitions"]'),
            holds(f"{change}.before.partitions == 9 && {change}.after.partitions == 10"),
        ),
    )
    assert set(found.values()) == {"pass"}


@pytest.mark.parametrize(
    "block",
    [
        'given "kafka_topic" "a" {\n name = "a"\n partitions = 2\n replication_factor = 3\n}',
        'given "kafka_acl" "a" {\n acl_principal = "User:a"\n acl_host = "*"\n'
        ' acl_operation = "Read"\n acl_permission_type = "Allow"\n resource_type = "Topic"\n'
        ' resource_name = "x"\n}',
        'given "kafka_access" "a" {\n principal = "User:a"\n role = "consumer"\n'
        ' topics = ["x"]\n groups = ["g"]\n}',
        'given "kafka_quota" "a" {\n user = "a"\n config = { consumer_byte_rate = 1000 }\n}',
        'given "kafka_user_scram_credential" "a" {\n username = "a"\n'
        ' scram_mechanism = "SCRAM-SHA-256"\n password = secret_env("X")\n}',
        'given "kafka_cluster_config" "a" {\n config = { "log.retention.ms" = 90000 }\n}',
        'given "kafka_broker_config" "a" {\n broker_id = 1\n'
        ' config = { "log.cleaner.threads" = 2 }\n}',
        'given "kafka_group_config" "a" {\n group = "a"\n'
        ' config = { "consumer.session.timeout.ms" = 50000 }\n}',
        'given "kafka_client_metrics" "a" {\n name = "a"\n config = { "interval.ms" = 60000 }\n}',
    ],
    ids=lambda block: block.split('"')[1],
)
def test_every_kind_of_object_can_be_given(shop: Here, block: str) -> None:
    """The provider's own rules and requests create it."""
    assert status_of(shop, block + "\n", run_block("a", OK)) == {"a": "pass"}


def test_given_objects_can_be_repeated(shop: Here) -> None:
    """`for_each` and functions work as in a configuration."""
    shop.write("main.kf.hcl", 'data "kafka_topics" "all" {\n  name = "t-*"\n}\n')
    given = (
        'given "kafka_topic" "t" {\n for_each = toset([for n in range(3) : "t-${n}"])\n'
        " name = each.key\n partitions = 1\n}\n"
    )
    run = run_block("a", holds("length(data.kafka_topics.all.list) == 3"))
    assert status_of(shop, given, run) == {"a": "pass"}


def test_modules_are_tested_through_their_outputs(shop: Here) -> None:
    """A change inside of a module has its whole address."""
    module = MAIN.replace('provider "kafka" {}\n', "")
    shop.write("m/main.kf.hcl", module)
    shop.write("main.kf.hcl", 'provider "kafka" {}\nmodule "shop" {\n  source = "./m"\n}\n')
    address = "module.shop.kafka_topic.orders"
    seen = holds(f'plan.changes["{address}"].action == "create" && module.shop.id != null')
    assert status_of(shop, run_block("a", 'command = "apply"', seen)) == {"a": "pass"}


def test_the_configs_of_a_given_topic_can_be_given_later(shop: Here) -> None:
    """Two blocks must not declare the same configs, but a run can give what the file did not."""
    topic = 'given "kafka_topic" "t" {\n name = "t"\n partitions = 1\n}\n'
    configs = 'given "kafka_topic_config" "t" {\n topic = "t"\n config = { "retention.ms" = 5 }\n}'
    shop.write("main.kf.hcl", 'data "kafka_topic" "t" {\n  name = "t"\n}\n')
    seen = holds('data.kafka_topic.t.config["retention.ms"] == "5"')
    assert status_of(shop, topic, run_block("a", configs, seen)) == {"a": "pass"}


def test_data_sources_answer_from_given_objects(shop: Here) -> None:
    """A data source reads the simulated cluster."""
    shop.write("data.kf.hcl", 'data "kafka_topic" "words" {\n  name = "words"\n}\n')
    given = 'given "kafka_topic" "words" {\n name = "words"\n partitions = 4\n}\n'
    run = run_block("a", holds("data.kafka_topic.words.partitions == 4"))
    assert status_of(shop, given, run) == {"a": "pass"}
    assert status_of(shop, run, code=1) == {"a": "error"}
    assert status_of(shop, run_block("a", "expect_failures = [data.kafka_topic.words]")) == {
        "a": "pass"
    }


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ('given "kafka_topc" "a" {\n}', 'There is no resource type "kafka_topc"'),
        ('given "kafka_topic" "a" {\n}', 'kafka_topic.a needs "name"'),
        ('given "kafka_topic" "a" {\n name = local.name\n}', 'There is no local value "name"'),
        (
            'given "kafka_topic" "a" {\n name = "a"\n partitions = 1\n replication_factor = 9\n}',
            "while creating the given objects",
        ),
        (
            'given "kafka_topic" "a" {\n name = "a b"\n partitions = 1\n}',
            "while creating the given objects",
        ),
    ],
)
def test_a_faulty_given_object_is_told_and_no_run_begins(shop: Here, block: str, told: str) -> None:
    """The fault is in the test file, so no run can say anything about the configuration."""
    shop.write("a.kftest.hcl", f"{block}\n{run_block('a', OK)}")
    said = shop.run("test")
    assert said.code == 1
    assert told in said.text
    assert 'run "a"' not in said.text
    assert "a.kftest.hcl... error Failure! 0 passed, 1 failed." in said.text


# ── systems ─────────────────────────────────────────────────────────────────────────────


def test_settings_and_aliases_have_clusters_of_their_own(shop: Here) -> None:
    """A provider instance is a cluster; `simulate` sets it up."""
    shop.write(
        "eu.kf.hcl",
        'provider "kafka" {\n  alias = "eu"\n}\nresource "kafka_topic" "eu" {\n'
        '  provider = kafka.eu\n  name = "prod.orders"\n  partitions = 1\n'
        "  replication_factor = 5\n}\n",
    )
    simulate = 'simulate "kafka" {\n alias = "eu"\n brokers = 5\n}\n'
    given = 'given "kafka_topic" "x" {\n provider = kafka.eu\n name = "x"\n partitions = 1\n}\n'
    apply = run_block("a", 'command = "apply"', holds("plan.counts.add == 2"))
    assert status_of(shop, simulate, given, apply) == {"a": "pass"}
    assert status_of(shop, apply, code=1) == {"a": "error"}
    shop.write("a.kftest.hcl", simulate.replace("eu", "us") + apply)
    assert "There is no provider instance kafka.us" in shop.fails("test")


def test_a_cluster_can_be_of_an_older_release(shop: Here) -> None:
    """A config that came later blocks the plan, and says since when it exists."""
    shop.write(
        "main.kf.hcl",
        'provider "kafka" {}\nresource "kafka_topic" "orders" {\n  name = "orders"\n'
        "  partitions = 1\n  replication_factor = 1\n  config = {\n"
        '    "remote.log.copy.disable" = "true"\n  }\n}\n',
    )
    why = "the cluster runs Kafka 3.8; remote.log.copy.disable exists since Kafka 3.9"
    apply = run_block("a", 'command = "apply"', holds("plan.counts.add == 1"))
    old = 'simulate "kafka" {\n kafka_version = "3.8"\n}\n'
    assert status_of(shop, old.replace("3.8", "3.9"), apply) == {"a": "pass"}
    assert status_of(shop, old, apply, code=1) == {"a": "error"}
    assert why in " ".join(shop.fails("test").split())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("brokers = 0", "0 is out of range"),
        ("broker = 5", 'simulate "kafka" has no argument "broker"'),
        ('brokers = "many"', '"brokers" must be a number'),
        ('kafka_version = "2.8"', '"kafka_version" must be one of 3.0, 3.1'),
    ],
)
def test_a_wrong_setting_is_told(shop: Here, line: str, told: str) -> None:
    """Settings are checked before anything runs."""
    shop.write("a.kftest.hcl", f'simulate "kafka" {{\n {line}\n}}\n{run_block("a", OK)}')
    assert told in shop.fails("test")


# ── failed and skipped ──────────────────────────────────────────────────────────────────


def test_runs_after_a_failed_apply_are_skipped(shop: Here) -> None:
    """They would start from another cluster than they expect; after a plan, the others go on."""
    found = status_of(
        shop,
        run_block("plan", holds("false")),
        run_block("apply", 'command = "apply"', holds("false")),
        run_block("next", OK),
        code=1,
    )
    assert found == {"plan": "fail", "apply": "fail", "next": "skip"}
    said = shop.run("test")
    assert 'run "next"... skip (run "apply" did not pass)' in said.text
    assert said.text.endswith("Failure! 0 passed, 2 failed, 1 skipped.")


def test_a_faulty_file_does_not_stop_the_others(shop: Here) -> None:
    """Its faults have their places, and count as one failure."""
    shop.write("a.kftest.hcl", 'run "a" {\n  speed = 1\n}\n')
    shop.write("b.kftest.hcl", run_block("b", OK))
    said = shop.run("test")
    assert said.code == 1
    assert "on a.kftest.hcl:2:3" in said.text
    assert 'run "b"... pass' in said.text
    assert said.text.endswith("Failure! 1 passed, 1 failed.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("variables {\n partition = 1\n}\n", 'The configuration has no variable "partition"'),
        ("variables {\n partitions = {}\n}\n", "does not fit its type"),
        ("variables {\n partitions = var.x\n}\n", "a.kftest.hcl:2:15"),
    ],
)
def test_a_wrong_variable_is_told(shop: Here, text: str, told: str) -> None:
    """A misspelt variable would make a test meaningless, so it is an error."""
    shop.write("a.kftest.hcl", text + run_block("a", OK))
    assert told in shop.fails("test")


def test_an_unknown_expectation_is_told(shop: Here) -> None:
    """A block that does not exist cannot fail."""
    shop.write("a.kftest.hcl", run_block("a", "expect_failures = [kafka_topic.order]"))
    told = shop.fails("test")
    assert "kafka_topic.order is not declared" in told
    assert 'Did you mean "kafka_topic.orders"?' in told


def test_a_configuration_that_cannot_be_parsed_is_told_once(shop: Here) -> None:
    """No test runs."""
    shop.write("main.kf.hcl", "resource {")
    shop.write("a.kftest.hcl", run_block("a", OK))
    told = shop.fails("test")
    assert "main.kf.hcl:1" in told
    assert "in progress" not in told


def test_the_same_fault_is_shown_once(shop: Here) -> None:
    """A fault of the configuration fails every run, and is told in full for the first."""
    shop.write("main.kf.hcl", MAIN.replace("= local.name", "= local.nmae"))
    shop.write("a.kftest.hcl", run_block("a", OK) + run_block("b", OK))
    told = shop.fails("test")
    assert told.count('There is no local value "nmae"') == 1
    assert "1 error as above" in told


# ── the command line ────────────────────────────────────────────────────────────────────


def test_files_and_folders_can_be_named(shop: Here) -> None:
    """By default those here and in `tests`, not in other folders."""
    for name in ("a", "tests/b", "more/c"):
        shop.write(f"{name}.kftest.hcl", run_block("r", OK))
    assert "Success! 2 passed, 0 failed." in shop.done("test").text
    assert "Success! 1 passed, 0 failed." in shop.done("test", "more").text
    said = shop.done("test", "tests/b.kftest.hcl", "more/c.kftest.hcl")
    assert "tests/b.kftest.hcl... pass" in said.text
    assert "more/c.kftest.hcl... pass" in said.text
    assert "main.kf.hcl is not a test file" in shop.fails("test", "main.kf.hcl")
    assert "cannot be read" in shop.fails("test", "nothing.kftest.hcl")


def test_a_folder_without_tests_is_an_error(shop: Here) -> None:
    """A pipeline in the wrong folder must not pass."""
    assert "there is no test file in this folder" in shop.fails("test")


def test_a_filter_keeps_what_prepares_a_run(shop: Here) -> None:
    """The apply runs before a chosen run are carried out too, other runs are not."""
    shop.write(
        "a.kftest.hcl",
        run_block("plan", holds("false"))
        + run_block("apply", 'command = "apply"')
        + run_block("idle", holds("length(plan.changes) == 0"))
        + run_block("late", 'command = "apply"', holds("false")),
    )
    said = shop.done("test", "--filter", "id*")
    assert 'run "apply"... pass run "idle"... pass' in said.text
    assert "2 passed" in said.text
    told = shop.fails("test", "--filter", "idel")
    assert "--filter 'idel' matches no run" in told
    assert 'Did you mean "idle"?' in told
    told = shop.fails("test", "-filter=a.kftest.hcl")
    assert "`kafkaform test a.kftest.hcl`" in told


def test_variables_of_the_command_line_are_weaker_than_those_of_the_file(
    shop: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment, then --var, then the file, then the run."""
    monkeypatch.setenv("KF_VAR_partitions", "4")
    shop.write("a.kftest.hcl", run_block("a", holds("var.partitions == 4")))
    shop.done("test")
    shop.write("a.kftest.hcl", run_block("a", holds("var.partitions == 8")))
    shop.done("test", "--var", "partitions=8")
    shop.write(
        "a.kftest.hcl",
        "variables {\n partitions = 10\n}\n"
        + run_block("a", holds("var.partitions == 10"))
        + run_block("b", "variables {\n partitions = 12\n}", holds("var.partitions == 12")),
    )
    shop.done("test", "--var", "partitions=8")


def test_nothing_outside_is_touched(shop: Here) -> None:
    """No state, log or lock is written, and a `backend` that does not exist is not asked."""
    shop.write(
        "backend.kf.hcl",
        'kafkaform {\n  backend "s3" {\n    bucket = "nowhere"\n    key    = "k"\n  }\n}\n',
    )
    shop.write("a.kftest.hcl", run_block("a", 'command = "apply"', OK))
    before = shop.files()
    shop.done("test")
    assert shop.files() == before


def test_verbose_shows_the_plan_of_each_run(shop: Here) -> None:
    """As `kafkaform plan` shows it, and as data with --json."""
    shop.write("a.kftest.hcl", run_block("a", OK))
    verbose = shop.done("test", "--verbose").text
    assert "kafka_topic.orders (prod.orders) will be created" in verbose
    assert "will be created" not in shop.done("test").text
    lines = shop.done("test", "--verbose", "--json").lines
    (plan,) = [line["test_plan"] for line in lines if line["type"] == "test_plan"]
    assert plan["resource_changes"][0]["address"] == "kafka_topic.orders"


def test_json_has_one_event_per_line(shop: Here) -> None:
    """In the shape of Terraform's, with a summary at the end."""
    shop.write("a.kftest.hcl", run_block("a", OK) + run_block("b", holds("false")))
    said = shop.run("test", "--json")
    assert said.code == 1
    kinds = [line["type"] for line in said.lines]
    assert kinds == [
        "version",
        "test_file",
        "test_run",
        "test_run",
        "diagnostic",
        "test_file",
        "test_summary",
    ]
    assert said.lines[4]["@testrun"] == "b"
    assert said.lines[4]["diagnostic"]["range"]["filename"] == "a.kftest.hcl"
    summary = said.lines[-1]["test_summary"]
    assert summary == {"status": "fail", "passed": 1, "failed": 1, "errored": 0, "skipped": 0}


def test_junit_is_well_formed_and_counts(shop: Here) -> None:
    """One testcase for each run, with the element of its status."""
    shop.write(
        "a.kftest.hcl",
        run_block("good", OK)
        + run_block("bad", holds("false"))
        + run_block("broken", 'command = "apply"', "variables {\n partitions = 13\n}")
        + run_block("late", OK),
    )
    shop.write("b.kftest.hcl", "faulty = 1")
    assert shop.run("test", "--junit", "out.xml").code == 1
    root = ET.parse(shop.path / "out.xml").getroot()
    assert root.attrib | {"time": ""} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
        "skipped": "1",
        "time": "",
    }
    cases = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {
        "good": [],
        "bad": ["failure"],
        "broken": ["error"],
        "late": ["skipped"],
        "(the file)": ["error"],
    }
    assert "a.kftest.hcl:12:21" in (root.find(".//failure").text or "")  # type: ignore[union-attr]


def test_foreign_text_cannot_break_junit(shop: Here) -> None:
    """Control characters, markup and log commands of a message stay text."""
    message = r"\u0000\u001b[31m ]]> <testcase/> & \ufffe ##[error]"
    shop.write(
        "a.kftest.hcl",
        f'run "a" {{\n assert {{\n  condition = false\n  error_message = "{message}"\n }}\n}}\n',
    )
    said = shop.run("test", "--junit", "out.xml")
    assert said.code == 1
    assert "\x1b" not in said.text
    root = ET.parse(shop.path / "out.xml").getroot()
    assert len(list(root.iter("testcase"))) == 1
    text = root.find(".//failure").text or ""  # type: ignore[union-attr]
    assert r"\x00\x1b[31m ]]> <testcase/> & \ufffe" in text
    assert "##[" not in text


@pytest.mark.slow("it runs two hundred plans and applies")
def test_two_hundred_runs_take_seconds(shop: Here) -> None:
    """Each run costs some milliseconds of processor time, also at the end of a long file."""
    runs = [
        run_block(
            f"r{number}",
            f'command = "{"apply" if number % 2 else "plan"}"',
            f"variables {{\n partitions = {6 + 2 * number}\n}}",
            holds("length(plan.changes) == 1"),
        )
        for number in range(200)
    ]
    shop.write("a.kftest.hcl", "".join(runs))
    before = os.times().user
    assert "Success! 200 passed" in shop.done("test").text
    assert os.times().user - before < 60


@pytest.mark.slow("it starts a process")
def test_a_signal_ends_the_command(shop: Here) -> None:
    """Ctrl-C ends it with 130, says so, and leaves nothing behind."""
    runs = [run_block(f"r{number}", 'command = "apply"') for number in range(2000)]
    shop.write("a.kftest.hcl", "".join(runs))
    before = shop.files()
    with subprocess.Popen(
        [sys.executable, "-m", "kafkaform", "test"],
        cwd=shop.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while "pass" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    assert told.strip() == "Interrupted; nothing was being changed. Run the same command again."
    assert shop.files() == before


@pytest.mark.parametrize("name", ["15-topics-of-others", "16-tests", "20-stream"])
def test_the_examples_pass(here: Here, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example with test files does what they say, in the standard layout."""
    shutil.copytree(EXAMPLES / name, here.path / name)
    monkeypatch.chdir(here.path / name)
    here.done("test")
    here.done("fmt", "--check", "--recursive")


# ── outputs of other folders ────────────────────────────────────────────────────────────

READER = """
provider "kafka" {}

data "kafkaform_outputs" "platform" {
  folder = "../platform"
}

resource "kafka_topic" "orders" {
  name = "${data.kafkaform_outputs.platform.outputs.prefix}.orders"
}
"""
READS = """
run "plan" {
  assert {
    condition     = plan.changes["kafka_topic.orders"].key == "acme.orders"
    error_message = "The topic has the prefix of the platform."
  }
}
"""


def put_out(values: str, folder: str = "../platform") -> str:
    return f'outputs "platform" {{\n  folder = "{folder}"\n  values = {values}\n}}\n'


def test_a_test_says_what_other_folders_put_out(here: Here) -> None:
    """No state is read: the folder need not even exist."""
    here.write("main.kf.hcl", READER)
    here.write("a.kftest.hcl", put_out('{ prefix = lower("ACME") }', "../platform/") + READS)
    here.done("test")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("", "a test reads no state of another folder"),
        (put_out('{ prefix = "a" }', "../other"), "a test reads no state of another folder"),
        (put_out('{ prefx = "acme" }'), 'has not recorded an output "prefix"'),
        (put_out("{ prefix = acme }"), "a.kftest.hcl:3:23"),
        (put_out("1"), "The values are an object"),
        (put_out("{}") * 2, "is in the file twice"),
        ('outputs "platform" {\n}\n', '"folder"'),
    ],
)
def test_faults_of_what_other_folders_put_out(here: Here, block: str, message: str) -> None:
    here.write("main.kf.hcl", READER)
    here.write("a.kftest.hcl", block + READS)
    said = here.run("test")
    assert said.code != 0 and message in said.text
