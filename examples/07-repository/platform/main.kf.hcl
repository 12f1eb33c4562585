# What all teams use.

resource "kafka_topic" "events" {
  name       = "platform.events"
  partitions = 3
  config     = { "retention.ms" = retention("30d") }
}

# A right that crosses the boundaries of two teams: neither of them can declare it alone.
resource "kafka_access" "orders_for_billing" {
  principal = "User:billing-app"
  role      = "consumer"
  topics    = ["shop.orders"]
  group     = "billing.orders"
}

resource "kafka_quota" "everybody" {
  user   = "default"
  config = { producer_byte_rate = 10 * 1024 * 1024 }
}

# Other folders read this from the state of the last apply.
output "sizes" {
  value = { small = 3, large = 6 }
}
