# Says nothing about where to connect and as whom: that is KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS,
# KAFKAFORM_KAFKA_SASL_USERNAME and the like, another login for each job.
provider "kafka" {
  # Brokers keep these two to themselves, and what an ACL means depends on them.
  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_topic" "orders" {
  name       = "checkout.orders"
  partitions = 3

  config = {
    "retention.ms" = retention("7d")
  }

  owner = "team-checkout"
}

resource "kafka_topic" "refunds" {
  name       = "checkout.refunds"
  partitions = 1
  owner      = "team-checkout"
}

resource "kafka_acl" "billing_reads_orders" {
  acl_principal       = "User:billing"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = kafka_topic.orders.name
}
