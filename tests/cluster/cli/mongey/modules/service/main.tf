terraform {
  required_providers {
    kafka = {
      source                = "Mongey/kafka"
      configuration_aliases = [kafka.security]
    }
  }
}

resource "kafka_user_scram_credential" "this" {
  provider = kafka.security

  username         = var.name
  scram_mechanism  = "SCRAM-SHA-512"
  scram_iterations = 8192
  password         = var.password
}

locals {
  principal = "User:${kafka_user_scram_credential.this.username}"
}

resource "kafka_acl" "write" {
  for_each = toset(var.writes)
  provider = kafka.security

  resource_name       = each.value
  resource_type       = "Topic"
  acl_principal       = local.principal
  acl_host            = "*"
  acl_operation       = "Write"
  acl_permission_type = "Allow"
}

resource "kafka_acl" "read" {
  for_each = toset(var.reads)
  provider = kafka.security

  resource_name       = each.key
  resource_type       = "Topic"
  acl_principal       = local.principal
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}

resource "kafka_acl" "group" {
  count    = length(var.reads) > 0 ? 1 : 0
  provider = kafka.security

  resource_name                = var.group_name
  resource_type                = "Group"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = local.principal
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}

resource "kafka_quota" "this" {
  provider = kafka.security

  entity_name = kafka_user_scram_credential.this.username
  entity_type = "user"

  config = {
    "producer_byte_rate" = var.byte_rate
    "consumer_byte_rate" = var.byte_rate * 2
  }
}
