# What the resources of the Confluent provider are in the cluster.
resource "kafka_topic" "orders" {
  name       = "acme.orders"
  partitions = 3
  config     = { "cleanup.policy" = "compact", "min.compaction.lag.ms" = "60000" }
}

resource "kafka_topic" "audit" {
  name       = "acme.audit"
  partitions = 1
}

locals {
  acls = toset([
    "User:acme-app|*|Read|Allow|Topic|acme.|Prefixed",
    "User:acme-app|*|Read|Allow|Group|acme-app|Literal",
  ])
}
