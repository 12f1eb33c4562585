# Where changes are tried first.

resource "kafka_topic" "created" {
  name       = "orders.created"
  partitions = 1
  config     = { "retention.ms" = retention("1d") }
}

resource "kafka_topic" "trial" {
  name       = "orders.trial"
  partitions = 1
}
