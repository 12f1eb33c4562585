# One cluster is copied to another by the connectors of MirrorMaker (KIP-382).

provider "kafka" {
  bootstrap_servers = [var.primary]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_PRIMARY_PASSWORD")
}

provider "kafka" {
  alias = "backup"

  bootstrap_servers = [var.backup]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_BACKUP_PASSWORD")

  # Brokers keep these two to themselves, and what an ACL means depends on them.
  authorizer {
    super_users     = ["User:admin", "User:broker"]
    allow_if_no_acl = false
  }
}

# Connect runs beside the cluster to which it writes.
provider "kafka_connect" {
  url      = var.connect
  username = "admin"
  password = secret_env("KAFKA_BACKUP_PASSWORD")
}

variable "primary" {
  type        = string
  description = "host:port of a broker of the cluster that is copied"
}

variable "backup" {
  type        = string
  description = "host:port of a broker of the cluster with the copy"
}

variable "connect" {
  type        = string
  description = "URL of a Kafka Connect worker of the cluster with the copy"
}

variable "secrets" {
  type        = string
  description = "folder of the worker with primary.properties and users.properties"
}

locals {
  login  = "org.apache.kafka.common.security.plain.PlainLoginModule required"
  bytes  = "org.apache.kafka.connect.converters.ByteArrayConverter"
  mirror = "org.apache.kafka.connect.mirror.Mirror"

  # The worker reads the passwords when it starts a connector: they are in no plan and in no state,
  # and Connect does not show them.
  passwords = {
    primary = "$${file:${var.secrets}/primary.properties:admin}"
    backup  = "$${file:${var.secrets}/users.properties:connect}"
  }

  clusters = {
    "source.cluster.alias"             = "primary"
    "source.cluster.bootstrap.servers" = var.primary
    "source.cluster.security.protocol" = "SASL_PLAINTEXT"
    "source.cluster.sasl.mechanism"    = "PLAIN"
    "source.cluster.sasl.jaas.config"  = "${local.login} username=\"admin\" password=\"${local.passwords.primary}\";"

    "target.cluster.alias"             = "backup"
    "target.cluster.bootstrap.servers" = var.backup
    "target.cluster.security.protocol" = "SASL_PLAINTEXT"
    "target.cluster.sasl.mechanism"    = "PLAIN"
    "target.cluster.sasl.jaas.config"  = "${local.login} username=\"connect\" password=\"${local.passwords.backup}\";"

    # Records are copied as they are.
    "key.converter"   = local.bytes
    "value.converter" = local.bytes
  }
}

resource "kafka_topic" "orders" {
  name       = "shop.orders"
  partitions = 3
}

# On the other side, MirrorMaker creates primary.shop.orders, and topics of its own.
resource "kafka_access" "copies" {
  provider = kafka.backup

  principal      = "User:connect"
  role           = "custom"
  topic_prefixes = ["primary."]
  topics         = ["heartbeats"]
  operations     = ["Create", "Read", "Write", "Describe", "Alter", "AlterConfigs", "DescribeConfigs"]
}

# It sets the offsets of groups, so that they go on where they were in the other cluster.
resource "kafka_access" "groups" {
  provider = kafka.backup

  principal      = "User:connect"
  role           = "consumer"
  topic_prefixes = ["primary."]
  group          = "billing"
}

resource "kafka_connect_connector" "records" {
  name  = "mirror.records"
  class = "${local.mirror}SourceConnector"

  config = merge(local.clusters, {
    "topics"                                = "shop[.].*"
    "replication.factor"                    = 1
    "offset-syncs.topic.replication.factor" = 1
    "sync.topic.acls.enabled"               = false
    "refresh.topics.interval.seconds"       = 5
  })

  depends_on = [kafka_topic.orders, kafka_access.copies]
}

resource "kafka_connect_connector" "offsets" {
  name  = "mirror.offsets"
  class = "${local.mirror}CheckpointConnector"

  config = merge(local.clusters, {
    "groups"                               = "billing"
    "sync.group.offsets.enabled"           = true
    "checkpoints.topic.replication.factor" = 1
    "emit.checkpoints.interval.seconds"    = 5
    "sync.group.offsets.interval.seconds"  = 5
    "refresh.groups.interval.seconds"      = 5
  })

  depends_on = [kafka_access.groups, kafka_connect_connector.records]
}

resource "kafka_connect_connector" "heartbeats" {
  name  = "mirror.heartbeats"
  class = "${local.mirror}HeartbeatConnector"

  config = merge(local.clusters, {
    "heartbeats.topic.replication.factor" = 1
  })

  depends_on = [kafka_access.copies]
}
