"""What one lane declares, generation after generation: some of every kind comes, changes, goes."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform_kafka.kinds.config.resource_type import CLUSTER

KEY = ("log.cleaner.backoff.ms", 15_000)
"""A config of brokers and of the cluster: its name and the value that it starts from."""


def declared(prefix: str, generation: int, key: tuple[str, int] | None) -> str:
    """The blocks of this generation, which follows the one before it. prefix: of every name; key:
    the lane's broker config, None for no configs that concern everybody."""
    g, now = generation, f'"{generation}a", "{generation}b"'
    return f"""
resource "kafka_topic" "keep" {{
  name       = "{prefix}keep"
  partitions = {1 + g}
  config     = {{ "retention.ms" = {3_600_000 + g} }}
}}
resource "kafka_topic" "brief" {{
  for_each   = toset([{now}])
  name       = "{prefix}${{each.key}}"
  partitions = 1
}}
{_removed(g) if g else ""}
resource "kafka_acl" "brief" {{
  for_each            = toset([{now}])
  acl_principal       = "User:{prefix}${{each.key}}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "{prefix}nobody-has-it"
}}
resource "kafka_quota" "keep" {{
  user   = "{prefix}keep"
  config = {{ producer_byte_rate = {1_000_000 + g} }}
}}
resource "kafka_quota" "brief" {{
  for_each = toset([{now}])
  user     = "{prefix}${{each.key}}"
  config   = {{ consumer_byte_rate = 1000000 }}
}}
resource "kafka_user_scram_credential" "keep" {{
  username            = "{prefix}keep"
  scram_mechanism     = "SCRAM-SHA-256"
  scram_iterations    = 4096
  password            = secret_env("PROOF_PASSWORD")
  password_wo_version = {1 + g}
}}
resource "kafka_user_scram_credential" "brief" {{
  for_each            = toset(["{g}a"])
  username            = "{prefix}${{each.key}}"
  scram_mechanism     = "SCRAM-SHA-256"
  scram_iterations    = 4096
  password            = secret_env("PROOF_PASSWORD")
  password_wo_version = 1
}}
resource "kafka_group_config" "keep" {{
  group  = "{prefix}keep"
  config = {{ "consumer.session.timeout.ms" = {45_000 + g} }}
}}
resource "kafka_client_metrics" "keep" {{
  name   = "{prefix}keep"
  config = {{ "interval.ms" = {60_000 + g} }}
}}
{_everybodys(key, g) if key else ""}"""


def names(prefix: str, generation: int, key: tuple[str, int] | None) -> set[tuple[str, str]]:
    """Kind and key of all that this generation has."""
    now = [f"{prefix}{generation}a", f"{prefix}{generation}b"]
    return set(_names(prefix, now, everybodys=key is not None))


def _names(prefix: str, now: list[str], *, everybodys: bool) -> Iterator[tuple[str, str]]:
    keep = f"{prefix}keep"
    for name in (keep, *now):
        yield "kafka_topic", name
        yield "kafka_quota", f"user={name}"
    for name in now:
        yield "kafka_acl", f"User:{name}|*|Read|Allow|Topic|{prefix}nobody-has-it|Literal"
    yield "kafka_user_scram_credential", f"{keep}|SCRAM-SHA-256"
    yield "kafka_user_scram_credential", f"{now[0]}|SCRAM-SHA-256"
    yield "kafka_group_config", keep
    yield "kafka_client_metrics", keep
    if everybodys:
        yield "kafka_broker_config", "1"
        yield "kafka_cluster_config", CLUSTER


def _removed(generation: int) -> str:
    return "\n".join(
        f"""removed {{
  from = kafka_topic.brief["{generation - 1}{letter}"]
  lifecycle {{ destroy = true }}
}}"""
        for letter in "ab"
    )


def _everybodys(key: tuple[str, int], generation: int) -> str:
    name, base = key
    return f"""
resource "kafka_broker_config" "first" {{
  broker_id = 1
  config    = {{ "{name}" = {base + generation} }}
}}
resource "kafka_cluster_config" "all" {{
  config = {{ "{name}" = {base + 5_000 + generation} }}
}}
"""
