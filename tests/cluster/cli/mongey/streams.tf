locals {
  prefix = "${var.environment}.shop"
}

module "stream" {
  source   = "./modules/stream"
  for_each = var.streams

  name               = "${local.prefix}.${each.key}"
  partitions         = each.value.partitions
  replication_factor = var.replication_factor
  retention_days     = each.value.retention_days
  compacted          = each.value.compacted
}

resource "kafka_topic" "dead_letters" {
  for_each = toset(["orders", "clicks"])

  name               = "${module.stream[each.value].name}.dead-letters"
  partitions         = 1
  replication_factor = var.replication_factor

  config = {
    "retention.ms" = "-1"
  }

  lifecycle {
    prevent_destroy = true
  }
}

# Made by the warehouse team.
data "kafka_topic" "facts" {
  name = "${var.environment}.warehouse.facts"
}

moved {
  from = kafka_topic.dlq
  to   = kafka_topic.dead_letters
}
