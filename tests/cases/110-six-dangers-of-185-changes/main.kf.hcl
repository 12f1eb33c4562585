provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_topic" "events" {
  for_each           = { for n in range(50) : format("%02d", n) => n }
  name               = "shop.events-${each.key}"
  partitions         = 3
  replication_factor = 3
  config             = { "retention.ms" = (14 + each.value) * 86400000 }
}

resource "kafka_topic" "new" {
  for_each           = { for n in range(60) : format("%02d", n) => n }
  name               = "shop.new-${each.key}"
  partitions         = 3 + each.value
  replication_factor = 3
}

resource "kafka_acl" "reads" {
  for_each            = { for n in range(60) : format("%02d", n) => n }
  acl_principal       = "User:reader-${each.key}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "shop.events-00"
}

resource "kafka_quota" "clients" {
  for_each    = { for n in range(9) : format("%d", n) => n }
  entity_type = "client-id"
  entity_name = "web-${each.key}"
  config      = { producer_byte_rate = 1048576 * (each.value + 1) }
}

resource "kafka_topic" "invoices" {
  name               = "billing.invoices"
  partitions         = 3
  replication_factor = 3
  config             = { "retention.ms" = 86400000 }
}

resource "kafka_topic" "clicks" {
  name               = "search.clicks"
  partitions         = 3
  replication_factor = 3
  config             = { "unclean.leader.election.enable" = true }
}

resource "kafka_topic" "scores" {
  name               = "fraud.scores"
  partitions         = 3
  replication_factor = 3
  config             = { "min.insync.replicas" = 1 }
}

resource "kafka_acl" "tool" {
  acl_principal       = "User:tool"
  acl_host            = "*"
  acl_operation       = "All"
  acl_permission_type = "Allow"
  resource_type       = "Cluster"
  resource_name       = "kafka-cluster"
}
