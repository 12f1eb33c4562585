provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

locals {
  rights = {
    everybody = ["User:*", "Describe", "Topic", "public", "Literal"]
    cluster   = ["User:ops", "Alter", "Cluster", "kafka-cluster", "Literal"]
    all       = ["User:batch", "All", "Topic", "orders", "Literal"]
    every     = ["User:audit", "Read", "Topic", "*", "Literal"]
    settings  = ["User:deploy", "AlterConfigs", "Topic", "orders", "Literal"]
    prefix    = ["User:shop", "Write", "Topic", "shop.", "Prefixed"]
    named     = ["User:app", "Read", "Topic", "orders", "Literal"]
  }
}

resource "kafka_acl" "gains" {
  for_each = local.rights

  acl_principal                = each.value[0]
  acl_host                     = "*"
  acl_operation                = each.value[1]
  acl_permission_type          = "Allow"
  resource_type                = each.value[2]
  resource_name                = each.value[3]
  resource_pattern_type_filter = each.value[4]
}
