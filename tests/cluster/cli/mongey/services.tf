locals {
  services = {
    checkout  = { writes = ["orders"], reads = ["customers"], bytes = 5242880 }
    reporting = { writes = [], reads = ["orders", "clicks"], bytes = 1048576 }
  }

  passwords = {
    checkout  = var.checkout_password
    reporting = var.service_passwords["reporting"]
  }
}

module "service" {
  source   = "./modules/service"
  for_each = local.services

  providers = {
    kafka          = kafka
    kafka.security = kafka
  }

  name       = "${var.environment}-${each.key}"
  password   = local.passwords[each.key]
  writes     = [for stream in each.value.writes : module.stream[stream].name]
  reads      = [for stream in each.value.reads : module.stream[stream].name]
  byte_rate  = each.value.bytes
  group_name = "${var.environment}.${each.key}"
}

resource "kafka_acl" "facts" {
  count = length(module.service)

  resource_name       = data.kafka_topic.facts.name
  resource_type       = "Topic"
  acl_principal       = "User:${values(module.service)[count.index].username}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}

resource "kafka_acl" "no_writes_elsewhere" {
  resource_name                = "${var.environment}.warehouse."
  resource_type                = "Topic"
  resource_pattern_type_filter = "Prefixed"
  acl_principal                = "User:*"
  acl_host                     = "*"
  acl_operation                = "Write"
  acl_permission_type          = "Deny"
}

resource "kafka_quota" "laptop" {
  entity_name = "203.0.113.7"
  entity_type = "ip"

  config = {
    "connection_creation_rate" = "10"
  }
}

resource "kafka_quota" "tools" {
  count = var.throttle_everybody ? 1 : 0

  entity_name = "${var.environment}-tools"
  entity_type = "client-id"

  config = {
    "request_percentage" = "50"
    "producer_byte_rate" = "1048576"
  }
}

import {
  to = kafka_acl.no_writes_elsewhere
  id = "User:*|*|Write|Deny|Topic|${var.environment}.warehouse.|Prefixed"
}
