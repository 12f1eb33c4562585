provider "kafka" {
  bootstrap_servers = var.brokers
  tls_enabled       = false
  sasl_mechanism    = "plain"
  sasl_username     = "admin"
  sasl_password     = var.service_passwords["kafka"]
  timeout           = 30
}
