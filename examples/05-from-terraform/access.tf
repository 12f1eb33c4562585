# What the reporting service may do: log in, read every event topic, and no faster than this.
resource "kafka_user_scram_credential" "reporting" {
  username        = "${var.environment}-reporting"
  scram_mechanism = "SCRAM-SHA-512"
  password        = var.reporting_password
}

locals {
  reporting = "User:${kafka_user_scram_credential.reporting.username}"
}

resource "kafka_acl" "reporting_reads" {
  for_each = kafka_topic.event

  resource_name       = each.value.name
  resource_type       = "Topic"
  acl_principal       = local.reporting
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}

resource "kafka_acl" "reporting_groups" {
  resource_name                = "${var.environment}.reporting."
  resource_type                = "Group"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = local.reporting
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}

resource "kafka_quota" "reporting" {
  entity_name = kafka_user_scram_credential.reporting.username
  entity_type = "user"

  config = {
    "consumer_byte_rate" = "10485760"
    "request_percentage" = "50"
  }
}
