provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

variable "retention_days" {
  type = number
}

resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = "many"
  config     = { "retention.ms" = var.retention * 86400000 }
}

resource "kafka_topic" "again" {
  name       = "clicks"
  partitions = 3
}

resource "kafka_topic" "clicks" {
  name       = "clicks"
  partitions = 6
}

resource "kafka_topic" "pinned" {
  name               = "pinned"
  partitions         = 3
  replica_assignment = [[1]]
}

resource "kafka_topik" "typo" {
  name = "typo"
}
