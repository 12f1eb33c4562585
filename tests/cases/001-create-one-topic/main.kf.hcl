provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 6
  replication_factor = 3

  config = {
    "cleanup.policy" = "compact"
    "retention.ms"   = "604800000"
  }
}
