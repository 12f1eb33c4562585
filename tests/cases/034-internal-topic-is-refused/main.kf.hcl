provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "offsets" {
  name       = "__consumer_offsets"
  partitions = 50

  lifecycle {
    adopt = true
  }
}

resource "kafka_topic" "mine" {
  name       = "__mine"
  partitions = 1
}
