# The shop, on two clusters: one folder, one state, one review.

provider "kafka" {
  bootstrap_servers = [var.eu]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_EU_PASSWORD")
}

provider "kafka" {
  alias = "us"

  bootstrap_servers = [var.us]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_US_PASSWORD")
}

variable "eu" {
  type        = string
  description = "host:port of a broker in Europe"
}

variable "us" {
  type        = string
  description = "host:port of a broker in the United States"
}

module "eu" {
  source = "./region"
  keep   = "7d"
}

module "us" {
  source    = "./region"
  providers = { kafka = kafka.us }
  keep      = "7d"
}
