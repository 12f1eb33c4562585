"""Attributes that a block leaves out, in plans, applies and outputs of a simulated cluster."""

from __future__ import annotations

from ...kit.commands.here import Here

MAIN = """
provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "new" {
  name = "new"
}

resource "kafka_topic" "old" {
  name = "old"

  lifecycle {
    adopt          = true
    ignore_changes = [config]
  }
}

resource "kafka_quota" "app" {
  user   = "app"
  config = { producer_byte_rate = 1 }
}

resource "kafka_access" "app" {
  principal = "User:app"
  role      = "producer"
  topics    = ["new"]
}

output "counts" {
  value = [kafka_topic.new.partitions, kafka_topic.old.partitions, kafka_topic.old.config]
}

output "assignment" {
  value = kafka_topic.new.replica_assignment
}

output "quota" {
  value = kafka_quota.app
}

output "groups" {
  value = kafka_access.app.groups
}
"""
GIVEN = """
given "kafka_topic" "old" {
  name               = "old"
  partitions         = 2
  replication_factor = 1
  config             = { "retention.ms" = "1000" }
}
"""
RUN = """
run "{0}" {{
  command = "{0}"

  assert {{
    condition     = {1}
    error_message = jsonencode(output.counts)
  }}
}}
"""
COUNTS = 'jsonencode(output.counts) == "[1,2,{\\"retention.ms\\":\\"1000\\"}]"'
PLANNED = f'{COUNTS} && output.groups == null && output.quota.user == "app"'


def test_outputs_have_the_defaults_before_an_apply_and_the_live_values_after_it(here: Here) -> None:
    """What is ignored stays as it is live; an ordinary null argument is null."""
    here.write("main.kf.hcl", MAIN)
    for command, condition in (
        ("plan", PLANNED),
        ("apply", f'{PLANNED} && jsonencode(output.assignment) == "[[1]]"'),
    ):
        here.write("a.kftest.hcl", GIVEN + RUN.format(command, condition))
        assert "1 passed" in here.done("test").out
