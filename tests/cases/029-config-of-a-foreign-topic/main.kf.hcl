provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic_config" "clicks" {
  topic  = "clicks"
  config = { "retention.ms" = "86400000" }
}

resource "kafka_topic_config" "payments" {
  topic  = "payments"
  config = { "retention.ms" = "86400000" }
}
