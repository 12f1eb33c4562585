provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_acl" "batch" {
  acl_principal                = "User:batch"
  acl_host                     = "10.0.0.7"
  acl_operation                = "All"
  acl_permission_type          = "Allow"
  resource_type                = "Group"
  resource_name                = "batch-"
  resource_pattern_type_filter = "Prefixed"
}

resource "kafka_acl" "hidden" {
  acl_principal       = "User:eve"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "everybody" {
  acl_principal       = "User:*"
  acl_host            = "*"
  acl_operation       = "Describe"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "*"
}

resource "kafka_acl" "root" {
  acl_principal       = "User:admin"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "writes" {
  acl_principal       = "User:new"
  acl_host            = "*"
  acl_operation       = "Write"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}
