# What the operators make of the files in source/.
resource "kafka_topic" "orders" {
  name               = "acme.orders"
  partitions         = 6
  replication_factor = 1
  config = {
    "retention.ms"              = "604800000"
    "min.cleanable.dirty.ratio" = "0.3"
    "preallocate"               = "false"
    "cleanup.policy"            = "compact,delete"
  }
}

resource "kafka_topic" "audit" {
  name               = "acme.audit"
  partitions         = 2
  replication_factor = 1
}

resource "kafka_user_scram_credential" "billing" {
  username        = "acme-billing"
  scram_mechanism = "SCRAM-SHA-512"
  password        = secret_env("LIVE_PASSWORD")
}

locals {
  acls = toset([
    "User:acme-billing|*|Read|Allow|Topic|acme.orders|Literal",
    "User:acme-billing|*|Describe|Allow|Topic|acme.orders|Literal",
    "User:acme-billing|10.0.0.7|Read|Allow|Group|acme.billing|Prefixed",
    "User:acme-billing|*|Delete|Deny|Topic|acme.audit|Literal",
    "User:CN=acme-shipping|*|Write|Allow|TransactionalID|acme-shipping|Prefixed",
  ])
}

resource "kafka_quota" "billing" {
  user = "acme-billing"
  config = {
    producer_byte_rate       = 1048576
    consumer_byte_rate       = 2097152
    request_percentage       = 55
    controller_mutation_rate = 10.5
  }
}
