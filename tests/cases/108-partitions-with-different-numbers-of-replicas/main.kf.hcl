provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 3
  replication_factor = 3
  config             = { "retention.ms" = "86400000" }
}
