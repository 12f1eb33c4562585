provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 3
  replication_factor = 3
  config             = { "retention.ms" = "86400000" }
  owner              = "shop"
}

# Nothing is planned for what is only declared.
resource "kafka_topic" "new" {
  name = "new"
}

resource "kafka_topic" "deleted" {
  name       = "deleted"
  partitions = 1
}

resource "kafka_topic" "recreated" {
  name       = "recreated"
  partitions = 1
}

# What others have set beside it is listed, and does not become ours.
resource "kafka_cluster_config" "all" {
  config = { "background.threads" = "11" }
}

output "names" {
  value = [kafka_topic.new.name]
}
