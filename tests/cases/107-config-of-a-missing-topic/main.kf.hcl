provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic_config" "misspelt" {
  topic  = "ordrs"
  config = { "retention.ms" = "86400000" }
}

resource "kafka_topic_config" "orders" {
  topic  = "orders"
  config = { "retention.ms" = "86400000" }
}
