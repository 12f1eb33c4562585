provider "kafka" {
  bootstrap_servers = var.kafka_brokers
  tls_enabled       = false
  sasl_mechanism    = "plain"
  sasl_username     = var.kafka_user
  sasl_password     = secret_env("KAFKA_PASSWORD")
  timeout           = 60
}
