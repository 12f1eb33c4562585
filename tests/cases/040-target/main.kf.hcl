provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 3
  replication_factor = 3
}

resource "kafka_topic" "audit" {
  name               = "${kafka_topic.orders.name}-audit"
  partitions         = 1
  replication_factor = 3
}

resource "kafka_topic" "clicks" {
  name               = "clicks"
  partitions         = 1
  replication_factor = 3
}
