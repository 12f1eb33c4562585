provider "kafka" {
  bootstrap_servers = var.brokers
  tls_enabled       = false
  sasl_mechanism    = "plain"
  sasl_username     = "admin"
  sasl_password     = var.kafka_password
  timeout           = 30
}

# The same cluster under another name, as for a second team's credentials.
provider "kafka" {
  alias             = "security"
  bootstrap_servers = var.brokers
  tls_enabled       = false
  sasl_mechanism    = "plain"
  sasl_username     = "admin"
  sasl_password     = var.service_passwords["kafka"]
}
