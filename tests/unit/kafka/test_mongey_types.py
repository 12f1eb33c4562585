"""Blocks of the types that can only be checked: what was written for Terraform fits, and what
does not fit is named."""

from __future__ import annotations

import pytest

from kafkaform.core.value import SecretRef
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.provider import PROVIDER

from ...kit.kafka.terraform import BLOCK, desired, faults

FITTING = {
    "an ACL on a name": """
resource "kafka_topic" "invoices" {
  name               = "billing.invoices"
  partitions         = 6
  replication_factor = 3
}

resource "kafka_acl" "ledger_reads_invoices" {
  resource_name       = kafka_topic.invoices.name
  resource_type       = "Topic"
  acl_principal       = "User:ledger"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
""",
    "ACLs on a prefix, one for each operation": """
resource "kafka_acl" "billing" {
  for_each = toset(["Read", "Write", "Describe", "DescribeConfigs"])

  resource_name                = "billing."
  resource_type                = "Topic"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = "User:CN=billing,O=Example"
  acl_host                     = "10.1.2.3"
  acl_operation                = each.key
  acl_permission_type          = "Allow"
}
""",
    "an ACL under the older names": """
resource "kafka_acl" "no_writes" {
  acl_resource_name   = "audit-group"
  acl_resource_type   = "Group"
  acl_principal       = "User:*"
  acl_host            = "*"
  acl_operation       = "All"
  acl_permission_type = "Deny"
}
""",
    "ACLs on a transactional id and on the cluster": """
resource "kafka_acl" "exactly_once" {
  resource_name       = "billing-tx"
  resource_type       = "TransactionalID"
  acl_principal       = "User:billing"
  acl_host            = "*"
  acl_operation       = "Write"
  acl_permission_type = "Allow"
}

resource "kafka_acl" "operator" {
  resource_name       = "kafka-cluster"
  resource_type       = "Cluster"
  acl_principal       = "User:operator"
  acl_host            = "*"
  acl_operation       = "IdempotentWrite"
  acl_permission_type = "Allow"

  lifecycle {
    prevent_destroy = true
  }
}
""",
    "quotas with numbers as numbers and as texts": """
resource "kafka_quota" "reports" {
  entity_name = "reports"
  entity_type = "client-id"

  config = {
    "consumer_byte_rate" = 1048576
    "producer_byte_rate" = "524288"
    "request_percentage" = "12.5"
  }
}

resource "kafka_quota" "everybody" {
  entity_type = "user"
  config      = { "producer_byte_rate" = "1000000" }
}

resource "kafka_quota" "office" {
  entity_name = "192.0.2.7"
  entity_type = "ip"
  config      = { connection_creation_rate = 20 }
}
""",
    "quotas of a user and a client together": """
resource "kafka_quota" "nightly" {
  user      = "reports"
  client_id = "default"
  config    = { consumer_byte_rate = 4000000 }
}

resource "kafka_quota" "visitors" {
  ip     = "default"
  config = { connection_creation_rate = 5 }
}
""",
    "a user with a password in a sensitive variable": """
variable "ledger_password" {
  type      = string
  sensitive = true
  default   = "hunter2"
}

resource "kafka_user_scram_credential" "ledger" {
  username         = "ledger"
  scram_mechanism  = "SCRAM-SHA-512"
  scram_iterations = "8192"
  password         = var.ledger_password
}
""",
    "a user with a write-only password": """
resource "kafka_user_scram_credential" "ledger" {
  username            = "ledger"
  scram_mechanism     = "SCRAM-SHA-256"
  password_wo         = secret_env("LEDGER_PASSWORD")
  password_wo_version = 3
}
""",
    "what a role needs": """
resource "kafka_access" "ledger" {
  principal      = "User:ledger"
  role           = "consumer"
  topics         = ["billing.invoices"]
  topic_prefixes = ["audit."]
  group          = "ledger"
}
""",
    "configs of brokers, groups and metrics": """
resource "kafka_broker_config" "one" {
  broker_id             = 1
  config                = { "log.cleaner.threads" = 2 }
  secret_config         = { "ssl.keystore.password" = secret_env("KEYSTORE") }
  secret_config_version = "1"
}

resource "kafka_cluster_config" "all" {
  config = { "message.max.bytes" = "2097152" }
}

resource "kafka_group_config" "shared" {
  group  = "workers"
  config = { "share.auto.offset.reset" = "earliest" }
}

resource "kafka_client_metrics" "everything" {
  name   = "everything"
  config = { "metrics" = "", "interval.ms" = 60000 }
}
""",
}


@pytest.mark.parametrize("text", FITTING.values(), ids=FITTING)
def test_what_fits_has_no_fault(text: str) -> None:
    """Blocks in the style of the other provider's users pass their schemas as they are."""
    assert faults(BLOCK + text) == []
    assert desired(BLOCK + text).declared


ACL = """
resource "kafka_acl" "x" {
  resource_name       = "orders"
  resource_type       = "Topic"
  acl_principal       = "User:app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""
QUOTA = """
resource "kafka_quota" "x" {
  entity_name = "app"
  entity_type = "user"
  config      = { producer_byte_rate = 1 }
}
"""
USER = """
resource "kafka_user_scram_credential" "x" {
  username        = "app"
  scram_mechanism = "SCRAM-SHA-256"
  password        = secret_env("APP")
}
"""
WRONG = [
    (ACL, '"Read"', '"Raed"', '"acl_operation" is one of', 'Did you mean "Read"?'),
    (ACL, '"Topic"', '"topic"', '"resource_type" is one of', 'Did you mean "Topic"?'),
    (ACL, '"Allow"', '"Any"', '"acl_permission_type" is one of Allow, Deny', ""),
    (ACL, "acl_host            = ", "# ", 'needs "acl_host"', "The client's IP address"),
    (ACL, "acl_host  ", "acl_resource_name ", "are the same argument", "Keep one"),
    (ACL, "acl_host ", "acl_hots ", 'no argument "acl_hots"', 'Did you mean "acl_host"?'),
    (QUOTA, '"user"', '"client"', '"entity_type" is one of', 'Did you mean "client-id"?'),
    (QUOTA, "entity_name = ", "ip = ", '"entity_type" and "ip" exclude each other', ""),
    (QUOTA, "= 1 ", '= "fast" ', '"config" must be a map of number', ""),
    (USER, '"SCRAM-SHA-256"', '"scram-sha256"', "is one of SCRAM-SHA-256, SCRAM-SHA-512", ""),
    (USER, 'secret_env("APP")', '"hunter2"', "takes a reference to a secret", "secret_env"),
    (USER, "password  ", "#", 'needs "password"', "The password"),
    (USER, "username  ", 'password_wo = secret_env("B")\n username', "are the same argument", ""),
]


@pytest.mark.parametrize(("text", "old", "new", "summary", "advice"), WRONG)
def test_what_does_not_fit_is_named(
    text: str, old: str, new: str, summary: str, advice: str
) -> None:
    """A misspelt word, a missing argument, two forms at once: told with place and way out."""
    assert old in text
    found = desired(BLOCK + text.replace(old, new, 1)).diagnostics
    assert any(summary in item.summary and advice in item.advice for item in found), found
    assert all(item.range is not None for item in found)
    assert "hunter2" not in repr(found)


def test_a_password_stays_a_reference_under_both_of_its_names() -> None:
    """What is only checked keeps its secret all the same, and knows when to send it."""
    for text in (USER, USER.replace("password  ", "password_wo ")):
        (item,) = desired(BLOCK + text.replace("}\n", '  password_version = "7"\n}\n')).declared
        assert item.attributes["password"] == SecretRef("env", "APP")
        assert item.secret_version == "7"


def test_no_name_is_forgotten() -> None:
    """Every type and data source that is promised."""
    assert {*PROVIDER.types, *(f"data.{name}" for name in PROVIDER.data)} >= {
        "kafka_topic",
        "kafka_topic_config",
        "kafka_acl",
        "kafka_access",
        "kafka_quota",
        "kafka_user_scram_credential",
        "kafka_broker_config",
        "kafka_cluster_config",
        "kafka_group_config",
        "kafka_client_metrics",
        "data.kafka_acls",
        "data.kafka_quotas",
    }


def test_the_simulated_provider_promises_the_same() -> None:
    """What is checked offline does not depend on the kind of cluster."""
    simulated = MemoryProvider(SimulatedCluster())
    assert simulated.types is PROVIDER.types
    assert simulated.data is PROVIDER.data


def test_every_attribute_is_documented() -> None:
    """The reference and the faults of missing arguments come from these texts."""
    for found in (*(kind.schema for kind in PROVIDER.types.values()), *PROVIDER.data.values()):
        assert found.doc and all(item.doc for item in found.attributes.values())
