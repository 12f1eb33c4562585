provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_acl" "reads" {
  acl_principal       = "User:app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}
