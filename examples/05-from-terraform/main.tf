locals {
  prefix = "${var.environment}.shop"
  day_ms = 24 * 60 * 60 * 1000

  defaults = {
    "cleanup.policy"   = "delete"
    "compression.type" = "lz4"
  }

  # One entry per topic; config is for what is special about it.
  events = {
    orders = {
      partitions     = 6
      retention_days = 7
    }
    payments = {
      partitions     = 3
      retention_days = 30
      config         = { "max.message.bytes" = "2097152" }
    }
    clicks = {
      partitions     = 12
      retention_days = 1
      config         = { "compression.type" = "zstd" }
    }
  }
}

resource "kafka_topic" "event" {
  for_each = local.events

  name               = "${local.prefix}.${each.key}"
  partitions         = each.value.partitions
  replication_factor = var.replication_factor

  config = merge(
    local.defaults,
    { "retention.ms" = tostring(each.value.retention_days * local.day_ms) },
    lookup(each.value, "config", {}),
  )
}

resource "kafka_topic" "changelog" {
  count = var.with_changelog ? 1 : 0

  name               = format("%s.orders-changelog", local.prefix)
  partitions         = local.events["orders"].partitions
  replication_factor = var.replication_factor

  config = {
    "cleanup.policy"            = "compact"
    "min.cleanable.dirty.ratio" = 0.1
    "segment.ms"                = local.day_ms
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "kafka_topic" "dead_letters" {
  for_each = var.consumers

  name               = "${kafka_topic.event["orders"].name}.${each.value}.dead-letters"
  partitions         = 1
  replication_factor = var.replication_factor

  config = {
    "retention.ms" = "-1"
  }

  depends_on = [kafka_topic.event]
}
