# What topicctl makes of the files in source/.
resource "kafka_topic" "orders" {
  name               = "acme.orders"
  partitions         = 3
  replication_factor = 1
  config = {
    "retention.ms"              = "86400000"
    "cleanup.policy"            = "compact,delete"
    "max.message.bytes"         = "5542880"
    "min.cleanable.dirty.ratio" = "0.26"
  }
}

resource "kafka_topic" "static" {
  name               = "acme.static"
  replica_assignment = [[1], [1]]
}

resource "kafka_topic" "racks" {
  name               = "acme.racks"
  partitions         = 1
  replication_factor = 1
}

locals {
  acls = toset([
    "User:acme-billing|*|Read|Allow|Topic|acme.|Prefixed",
    "User:acme-billing|*|Describe|Allow|Topic|acme.|Prefixed",
    "User:acme-billing|10.0.0.8|Read|Deny|Group|acme.billing|Literal",
  ])
}
