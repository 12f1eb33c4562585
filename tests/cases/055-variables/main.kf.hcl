provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

variable "partitions" {
  type = number
}

resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = var.partitions
}
