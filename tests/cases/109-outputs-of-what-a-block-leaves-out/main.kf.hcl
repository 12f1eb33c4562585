provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name = "orders"
}

resource "kafka_topic" "refunds" {
  name               = "refunds"
  replication_factor = -1
  config_mode        = "additive"
}

locals {
  text = "${kafka_topic.orders.partitions} partitions"
}

output "orders" {
  value = [kafka_topic.orders.partitions, kafka_topic.orders.config]
}

output "refunds" {
  value = [kafka_topic.refunds.replication_factor, kafka_topic.refunds.config]
}

output "text" {
  value = local.text
}

output "assignment" {
  value = kafka_topic.orders.replica_assignment
}
