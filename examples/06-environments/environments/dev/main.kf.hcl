# kafkaform --chdir environments/dev plan

provider "kafka" {
  bootstrap_servers = ["127.0.0.1:19092"]
  cluster_id        = "Aq3mZ5tGSmyR7dK1pHc0Ew"
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_NONPROD_PASSWORD")
}

module "shop" {
  source = "../../modules/shop"
  prefix = "dev."
}

# Only here: what nobody else needs yet.
resource "kafka_topic" "trial" {
  name       = "dev.store.trial"
  partitions = 1
}

output "topics" {
  value = module.shop.topics
}
