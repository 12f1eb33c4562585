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

resource "kafka_access" "mirror" {
  principal = "User:mirror"
  role      = "consumer"
  topics    = [module.orders.topic, module.returns.topic]
}

# The mirror reads the topics of all teams with one group, so teams/billing needs this right, too.
resource "kafka_access" "mirror_group" {
  principal  = "User:mirror"
  role       = "custom"
  groups     = ["mirror"]
  operations = ["Read"]

  lifecycle {
    shared = true
  }
}
