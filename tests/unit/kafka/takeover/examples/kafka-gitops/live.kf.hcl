# What kafka-gitops applies for the files in source/.
resource "kafka_topic" "orders" {
  name               = "acme.orders"
  partitions         = 6
  replication_factor = 1
  config             = { "cleanup.policy" = "compact", "segment.bytes" = "2000000" }
}

resource "kafka_topic" "audit" {
  name               = "acme.audit"
  partitions         = 1
  replication_factor = 1
}

locals {
  acls = toset([
    # application
    "User:acme-shop|*|Read|Allow|Topic|acme.orders|Literal",
    "User:acme-shop|*|Write|Allow|Topic|acme.orders|Literal",
    "User:acme-shop|*|Describe|Allow|Topic|acme.orders|Literal",
    "User:acme-shop|*|Write|Allow|Topic|acme.audit|Literal",
    "User:acme-shop|*|Describe|Allow|Topic|acme.audit|Literal",
    "User:acme-shop|*|Read|Allow|Group|acme-shop|Literal",
    "User:acme-shop|*|Read|Allow|Topic|acme.|Prefixed",
    # kafka-connect
    "User:acme-connect|*|Read|Allow|Topic|acme.connect.config|Literal",
    "User:acme-connect|*|Write|Allow|Topic|acme.connect.config|Literal",
    "User:acme-connect|*|Read|Allow|Topic|connect-offsets-acme-connect|Literal",
    "User:acme-connect|*|Write|Allow|Topic|connect-offsets-acme-connect|Literal",
    "User:acme-connect|*|Read|Allow|Topic|connect-status-acme-connect|Literal",
    "User:acme-connect|*|Write|Allow|Topic|connect-status-acme-connect|Literal",
    "User:acme-connect|*|Read|Allow|Group|acme-workers|Literal",
    "User:acme-connect|*|Read|Allow|Topic|acme.orders|Literal",
    "User:acme-connect|*|Describe|Allow|Topic|acme.orders|Literal",
    "User:acme-connect|*|Read|Allow|Group|connect-acme-sink|Literal",
    "User:acme-connect|*|Write|Allow|Topic|acme.audit|Literal",
    "User:acme-connect|*|Describe|Allow|Topic|acme.audit|Literal",
    # kafka-streams
    "User:acme-streams|*|Read|Allow|Topic|acme.orders|Literal",
    "User:acme-streams|*|Describe|Allow|Topic|acme.orders|Literal",
    "User:acme-streams|*|Write|Allow|Topic|acme.audit|Literal",
    "User:acme-streams|*|Describe|Allow|Topic|acme.audit|Literal",
    "User:acme-streams|*|Read|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|Write|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|Describe|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|Delete|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|Create|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|Alter|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|AlterConfigs|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|DescribeConfigs|Allow|Topic|acme-stream|Prefixed",
    "User:acme-streams|*|Read|Allow|Group|acme-stream|Literal",
    "User:acme-streams|*|Describe|Allow|Group|acme-stream|Literal",
    "User:acme-streams|*|Delete|Allow|Group|acme-stream|Literal",
    "User:acme-streams|*|DescribeConfigs|Allow|Cluster|kafka-cluster|Literal",
    # the roles of a user, and its own ACL
    "User:acme-ops|*|Write|Allow|Topic|*|Literal",
    "User:acme-ops|*|Read|Allow|Topic|*|Literal",
    "User:acme-ops|*|Read|Allow|Group|*|Literal",
    "User:acme-ops|*|Describe|Allow|Cluster|kafka-cluster|Literal",
    "User:acme-ops|*|Describe|Allow|Topic|*|Literal",
    "User:acme-ops|*|DescribeConfigs|Allow|Topic|*|Literal",
    "User:acme-ops|*|Describe|Allow|Group|*|Literal",
    "User:acme-ops|10.0.0.9|Delete|Deny|Topic|acme.audit|Literal",
  ])
}
