provider "kafka" {
  bootstrap_servers = [var.bootstrap]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_STAGING_PASSWORD")
}

variable "bootstrap" {
  type        = string
  description = "host:port of one broker"
}
