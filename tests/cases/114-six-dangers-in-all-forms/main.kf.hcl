provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
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
