provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "shop" {
  for_each = toset(["orders"])

  name               = each.key
  partitions         = 3
  replication_factor = 3
}

moved {
  from = kafka_topic.orders
  to   = kafka_topic.shop["orders"]
}
