provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 3
  replication_factor = 3
}

output "names" {
  value = [kafka_topic.orders.name]
}

output "orders_id" {
  value = kafka_topic.orders.topic_id
}

output "team" {
  value = "shop"
}
