# What JulieOps applies for the files in source/.
resource "kafka_topic" "orders" {
  name               = "acme.shop.test.sales.orders"
  partitions         = 3
  replication_factor = 1
  config             = { "retention.ms" = "7000000", "max.message.bytes" = "7340116" }
}

resource "kafka_topic" "single" {
  for_each           = toset(["acme.shop.test.sales.audit.avro", "acme.special"])
  name               = each.key
  partitions         = 1
  replication_factor = 1
}

resource "kafka_quota" "writer" {
  user   = "acme-writer"
  config = { producer_byte_rate = 1024, request_percentage = 50.5 }
}

locals {
  acls = toset([
    # consumers of the project, on each of its topics
    "User:acme-reader|*|Read|Allow|Topic|acme.shop.test.sales.orders|Literal",
    "User:acme-reader|*|Describe|Allow|Topic|acme.shop.test.sales.orders|Literal",
    "User:acme-reader|*|Read|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-reader|*|Describe|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-reader|*|Read|Allow|Group|*|Literal",
    "User:acme-batch|*|Read|Allow|Topic|acme.shop.test.sales.orders|Literal",
    "User:acme-batch|*|Describe|Allow|Topic|acme.shop.test.sales.orders|Literal",
    "User:acme-batch|*|Read|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-batch|*|Describe|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-batch|*|Read|Allow|Group|acme.batch|Prefixed",
    # producers: on orders that of the topic, without transactions
    "User:acme-writer|*|Write|Allow|Topic|acme.shop.test.sales.orders|Literal",
    "User:acme-writer|*|Describe|Allow|Topic|acme.shop.test.sales.orders|Literal",
    "User:acme-writer|*|Write|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-writer|*|Describe|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-writer|*|Write|Allow|TransactionalID|acme-tx|Prefixed",
    "User:acme-writer|*|Describe|Allow|TransactionalID|acme-tx|Prefixed",
    "User:acme-writer|*|IdempotentWrite|Allow|Cluster|kafka-cluster|Literal",
    # users of single topics
    "User:acme-special|*|Read|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-special|*|Describe|Allow|Topic|acme.shop.test.sales.audit.avro|Literal",
    "User:acme-special|*|Read|Allow|Group|acme-special|Literal",
    "User:acme-special|*|Write|Allow|Topic|acme.special|Literal",
    "User:acme-special|*|Describe|Allow|Topic|acme.special|Literal",
    "User:acme-special|*|IdempotentWrite|Allow|Cluster|kafka-cluster|Literal",
    # applications
    "User:acme-streams|*|Read|Allow|Topic|acme.in|Literal",
    "User:acme-streams|*|Write|Allow|Topic|acme.out|Literal",
    "User:acme-streams|*|All|Allow|Topic|acme.shop.test.sales.|Prefixed",
    "User:acme-streams|*|Read|Allow|Group|acme.shop.test.sales.|Prefixed",
    "User:acme-streams|*|Write|Allow|TransactionalID|acme.shop.test.sales.|Prefixed",
    "User:acme-streams|*|Describe|Allow|TransactionalID|acme.shop.test.sales.|Prefixed",
    "User:acme-connect|*|Read|Allow|Topic|acme.status|Literal",
    "User:acme-connect|*|Write|Allow|Topic|acme.status|Literal",
    "User:acme-connect|*|Read|Allow|Topic|connect-offsets|Literal",
    "User:acme-connect|*|Write|Allow|Topic|connect-offsets|Literal",
    "User:acme-connect|*|Read|Allow|Topic|connect-configs|Literal",
    "User:acme-connect|*|Write|Allow|Topic|connect-configs|Literal",
    "User:acme-connect|*|Read|Allow|Group|acme-workers|Literal",
    "User:acme-connect|*|Read|Allow|Topic|acme.in|Literal",
    "User:acme-ksql|*|Read|Allow|Topic|acme.in|Literal",
    "User:acme-ksql|*|All|Allow|Topic|acme-ksql|Prefixed",
    "User:acme-ksql|*|All|Allow|Group|acme-ksql|Prefixed",
    # the role, and the registry
    "User:acme-auditor|*|Describe|Allow|Topic|acme.shop.|Prefixed",
    "User:acme-auditor|10.0.0.3|Read|Allow|Group|acme-audit|Literal",
    "User:acme-registry|*|Create|Allow|Topic|acme.schemas|Literal",
    "User:acme-registry|*|DescribeConfigs|Allow|Topic|acme.schemas|Literal",
    "User:acme-registry|*|Describe|Allow|Topic|acme.schemas|Literal",
    "User:acme-registry|*|Write|Allow|Topic|acme.schemas|Literal",
    "User:acme-registry|*|Read|Allow|Topic|acme.schemas|Literal",
    "User:acme-registry|*|Describe|Allow|Topic|__consumer_offsets|Literal",
    "User:acme-registry|*|Read|Allow|Group|acme-registry|Literal",
  ])
}
