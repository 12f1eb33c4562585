provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["broker-1.eu.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 3
  replication_factor = 3
}

resource "kafka_topic" "orders_eu" {
  provider = kafka.eu

  name               = "orders"
  partitions         = 6
  replication_factor = 1
}
