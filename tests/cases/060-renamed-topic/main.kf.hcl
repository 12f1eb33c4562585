provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "purchases"
  partitions         = 3
  replication_factor = 3
}

resource "kafka_topic" "teams" {
  for_each           = toset(["deliveries"])
  name               = each.key
  partitions         = 3
  replication_factor = 3
}

removed {
  from = kafka_topic.teams["shipments"]

  lifecycle {
    destroy = true
  }
}
