provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_acl" "nobody" {
  acl_principal       = "ci"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "name" {
  acl_principal       = "User:ci"
  acl_host            = "build.example"
  acl_operation       = "Describe"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "short" {
  acl_principal       = "User:ci"
  acl_host            = "::1"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "nonsense" {
  acl_principal       = "User:ci"
  acl_host            = "*"
  acl_operation       = "ClusterAction"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}

resource "kafka_acl" "cluster" {
  acl_principal       = "User:ci"
  acl_host            = "*"
  acl_operation       = "Alter"
  acl_permission_type = "Allow"
  resource_type       = "Cluster"
  resource_name       = "main"
}

resource "kafka_acl" "pattern" {
  acl_principal       = "User:ci"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "shop.*"
}

resource "kafka_acl" "everything" {
  acl_principal                = "User:ci"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
  resource_type                = "Topic"
  resource_name                = "*"
  resource_pattern_type_filter = "Prefixed"
}
