module "orders" {
  source = "../../modules/stream"
  name   = "shop.orders"
  writer = "User:shop-app"
}

module "returns" {
  source = "../../modules/stream"
  name   = "shop.returns"
  keep   = "14d"
  writer = "User:shop-app"
}

# The mirror reads with one group, so one ACL of this role is that of teams/billing, too.
resource "kafka_access" "mirror" {
  principal = "User:mirror"
  role      = "consumer"
  topics    = [module.orders.topic, module.returns.topic]
  group     = "mirror"

  lifecycle {
    shared = true
  }
}
