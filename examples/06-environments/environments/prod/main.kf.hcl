# kafkaform --chdir environments/prod plan

provider "kafka" {
  bootstrap_servers = ["127.0.0.1:19192"]
  cluster_id        = "WYxXbJ8uQ0eT2nV4kLr9sA"
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_PROD_PASSWORD")
}

module "shop" {
  source     = "../../modules/shop"
  partitions = 6
  keep       = "30d"
  final      = true
}

output "topics" {
  value = module.shop.topics
}
