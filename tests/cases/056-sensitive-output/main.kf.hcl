provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

variable "tier" {
  type    = string
  default = "gold-nobody-may-see-this"
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 3
  replication_factor = 3
}

output "tier" {
  value     = var.tier
  sensitive = true
}
