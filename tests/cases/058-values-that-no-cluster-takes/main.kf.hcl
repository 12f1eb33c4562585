provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "none" {
  name               = "none"
  partitions         = 0
  replication_factor = -2
}

resource "kafka_quota" "misspelt" {
  user   = "a"
  config = { producer_rate = 1 }
}

resource "kafka_quota" "zero" {
  user   = "b"
  config = { producer_byte_rate = 0, consumer_byte_rate = 1.5 }
}

resource "kafka_broker_config" "first" {
  broker_id = 1
  config    = { "num.partitions" = 6 }
}

resource "kafka_cluster_config" "all" {
  config = { "super.users" = "User:admin" }
}
