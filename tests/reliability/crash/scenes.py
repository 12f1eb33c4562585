"""What a folder declares from round to round: in each something of every sort comes, changes and
goes, so that each apply has the same steps as the one before, with other names and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from ...kit.kafka.versions import get_choice
from ...kit.promises import Name, Thing, World

PASSWORD = "PROOF_PASSWORD"
PROVIDER = """\
provider "kafka" {{
  bootstrap_servers = ["{bootstrap}"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("{password}")
  operation_timeout = "{timeout}s"

  authorizer {{
    super_users     = ["User:admin", "User:broker"]
    allow_if_no_acl = false
  }}
}}
"""
NEW = {"retention.ms": "3600000", "segment.bytes": "1048576"}
CHANGED = {"retention.ms": "7200000", "max.message.bytes": "100000"}
OPERATIONS = ("Read", "Write")
PARKED = ("pa", "pb")
"""Topics that are declared in every other round, and parked in the others."""
PARKING = """

  lifecycle {
    prevent_destroy = false
    park            = "30d"
  }"""
STEADY = 2
"""The first round in which something goes that an earlier one has made."""


def provider(bootstrap: str, timeout: float) -> str:
    """timeout: seconds that an operation may take."""
    return PROVIDER.format(bootstrap=bootstrap, password=PASSWORD, timeout=timeout)


def text(prefix: str, number: int) -> str:
    """The configuration of a round. A topic comes in one round, gets partitions and other
    configs in the next, and goes in the one after; of two topics, one is parked and the other one
    comes back; a label, a quota, a user's password and a
    group's config change in each; users, ACLs and quotas come and go."""
    return "\n".join(
        (
            _topic(prefix, "stay", 1, {}, f'\n  labels = {{ round = "{number}" }}'),
            _topic(prefix, f"t{number}", 1, NEW),
            *((_topic(prefix, f"t{number - 1}", 2, CHANGED),) if number else ()),
            *((_removed(f"t{number - 2}"),) if number >= STEADY else ()),
            _topic(prefix, PARKED[number % 2], 1, {}, PARKING),
            *(_acl(prefix, number, operation) for operation in OPERATIONS),
            _quota(
                f"{prefix}u", "all", {"producer_byte_rate": number + 1000, "request_percentage": 50}
            ),
            _quota(f"{prefix}u{number}", f"q{number}", {"producer_byte_rate": number + 1000}),
            _user(f"{prefix}u", "all", number),
            _user(f"{prefix}u{number}", f"s{number}", 1),
            *((_group(f"{prefix}g", number),) if has_group_configs() else ()),
            f'output "round" {{\n  value = {number}\n}}\n',
        )
    )


def wanted(prefix: str, number: int) -> World:
    """What is live when that round is applied."""
    return dict(_wanted(prefix, number))


def _wanted(prefix: str, number: int) -> Iterator[tuple[Name, Thing]]:
    topics: Mapping[str, tuple[int, Mapping[str, str]]] = {
        "stay": (1, {}),
        f"t{number}": (1, NEW),
        **({f"t{number - 1}": (2, CHANGED)} if number else {}),
        **{name: (1, {}) for name in PARKED[: number + 1]},
    }
    for name, (partitions, config) in topics.items():
        told = {"partitions": partitions, "replication_factor": 1, "config": config}
        yield ("kafka_topic", prefix + name), Thing({"name": prefix + name, **told})
    rules = [(f"User:{prefix}u{number}", "Allow", f"t{number}")]
    rules += [("User:*", "Deny", PARKED[1 - number % 2])] if number else []
    for (principal, permission, name), operation in product(rules, OPERATIONS):
        acl = {
            "acl_principal": principal,
            "acl_host": "*",
            "acl_operation": operation,
            "acl_permission_type": permission,
            "resource_type": "Topic",
            "resource_name": prefix + name,
            "resource_pattern_type_filter": "Literal",
        }
        yield ("kafka_acl", "|".join(acl.values())), Thing(acl)
    for user, more in ((f"{prefix}u", {"request_percentage": 50}), (f"{prefix}u{number}", {})):
        quota = {"entity": {"user": user}, "config": {"producer_byte_rate": number + 1000, **more}}
        yield ("kafka_quota", f"user={user}"), Thing(quota)
        scram = {"username": user, "scram_mechanism": "SCRAM-SHA-256", "scram_iterations": 4096}
        yield ("kafka_user_scram_credential", f"{user}|SCRAM-SHA-256"), Thing(scram)
    if not has_group_configs():
        return
    config = {"consumer.session.timeout.ms": str(50000 + number)}
    yield ("kafka_group_config", f"{prefix}g"), Thing({"group": f"{prefix}g", "config": config})


def has_group_configs() -> bool:
    """Whether the Kafka of this run has configs of groups."""
    return not get_choice().lacks("4.0", zookeeper=False)


def _topic(
    prefix: str, name: str, partitions: int, config: Mapping[str, str], more: str = ""
) -> str:
    return f"""\
resource "kafka_topic" "{name}" {{
  name               = "{prefix}{name}"
  partitions         = {partitions}
  replication_factor = 1
  config             = {_map(config)}{more}
}}
"""


def _removed(name: str) -> str:
    return f"""\
removed {{
  from = kafka_topic.{name}
  lifecycle {{
    destroy = true
  }}
}}
"""


def _acl(prefix: str, number: int, operation: str) -> str:
    return f"""\
resource "kafka_acl" "a{number}{operation}" {{
  acl_principal       = "User:{prefix}u{number}"
  acl_host            = "*"
  acl_operation       = "{operation}"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "{prefix}t{number}"
}}
"""


def _quota(user: str, label: str, config: Mapping[str, int]) -> str:
    return f"""\
resource "kafka_quota" "{label}" {{
  user   = "{user}"
  config = {_map(config)}
}}
"""


def _user(user: str, label: str, version: int) -> str:
    return f"""\
resource "kafka_user_scram_credential" "{label}" {{
  username            = "{user}"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("{PASSWORD}")
  password_wo_version = {version}
}}
"""


def _group(group: str, number: int) -> str:
    return f"""\
resource "kafka_group_config" "all" {{
  group  = "{group}"
  config = {{ "consumer.session.timeout.ms" = {50000 + number} }}
}}
"""


def _map(values: Mapping[str, object]) -> str:
    return "{ " + ", ".join(f'"{key}" = "{value}"' for key, value in values.items()) + " }"
