provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

locals {
  streams = {
    clicks   = { partitions = 6, days = 7 }
    payments = { partitions = 3, days = 30 }
  }
}

resource "kafka_topic" "streams" {
  for_each = local.streams

  name               = "shop.${each.key}"
  partitions         = each.value.partitions
  replication_factor = 3
  config             = { "retention.ms" = "${each.value.days * 24 * 3600 * 1000}" }
}
