module "invoices" {
  source = "../../modules/stream"
  name   = "billing.invoices"
  writer = "User:billing-app"
}

resource "kafka_access" "mirror" {
  principal = "User:mirror"
  role      = "consumer"
  topics    = [module.invoices.topic]
  group     = "mirror"

  lifecycle {
    shared = true
  }
}
