provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_acl" "reads" {
  acl_principal       = "User:ci"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "no_writes" {
  acl_principal       = "User:*"
  acl_host            = "*"
  acl_operation       = "Write"
  acl_permission_type = "Deny"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "prefix" {
  acl_principal                = "User:ci"
  acl_host                     = "*"
  acl_operation                = "Describe"
  acl_permission_type          = "Allow"
  resource_type                = "Topic"
  resource_name                = "ord"
  resource_pattern_type_filter = "Prefixed"
}

resource "kafka_acl" "cluster" {
  acl_principal       = "User:ci"
  acl_host            = "10.1.2.3"
  acl_operation       = "Describe"
  acl_permission_type = "Allow"
  resource_type       = "Cluster"
  resource_name       = "kafka-cluster"
}
