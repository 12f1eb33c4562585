provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "shop" {
  for_each = toset(["shop.orders", "shop_orders"])

  name       = each.key
  partitions = 3
}
