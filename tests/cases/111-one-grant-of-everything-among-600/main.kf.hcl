provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_acl" "reads" {
  for_each            = { for n in range(600) : format("%03d", n) => n }
  acl_principal       = "User:app-${each.key}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders-${each.key}"
}

resource "kafka_acl" "tool" {
  acl_principal       = "User:tool"
  acl_host            = "*"
  acl_operation       = "All"
  acl_permission_type = "Allow"
  resource_type       = "Cluster"
  resource_name       = "kafka-cluster"
}
