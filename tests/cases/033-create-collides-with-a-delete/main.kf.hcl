provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "shop_orders" {
  name       = "shop_orders"
  partitions = 3
}

removed {
  from = kafka_topic.shop

  lifecycle {
    destroy = true
  }
}
