provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = true
  }
}

resource "kafka_acl" "other" {
  acl_principal       = "User:app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Group"
  resource_name       = "g"
}
