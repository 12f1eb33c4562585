provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "clicks" {
  name       = "clicks"
  partitions = 3
}

removed {
  from = kafka_topic_config.payments

  lifecycle {
    destroy = true
  }
}
