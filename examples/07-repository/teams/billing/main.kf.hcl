module "invoices" {
  source = "../../modules/stream"
  name   = "billing.invoices"
  writer = "User:billing-app"
}

resource "kafka_access" "mirror" {
  principal = "User:mirror"
  role      = "consumer"
  topics    = [module.invoices.topic]
}

# The same right as in teams/shop.
resource "kafka_access" "mirror_group" {
  principal  = "User:mirror"
  role       = "custom"
  groups     = ["mirror"]
  operations = ["Read"]

  lifecycle {
    shared = true
  }
}
