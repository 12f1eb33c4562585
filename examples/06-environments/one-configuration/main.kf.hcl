# The same without folders: one configuration, and for each environment a file of values and a state.
#   kafkaform plan --var-file prod.kfvars.hcl --state prod.json

variable "environment" {
  type = object({
    bootstrap  = string
    cluster_id = string
    prefix     = optional(string, "")
    partitions = optional(number, 3)
    keep       = optional(string, "1d")
    final      = optional(bool, false)
  })
}

provider "kafka" {
  bootstrap_servers = [var.environment.bootstrap]
  cluster_id        = var.environment.cluster_id
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKA_PASSWORD")
}

module "shop" {
  source     = "../modules/shop"
  prefix     = var.environment.prefix
  partitions = var.environment.partitions
  keep       = var.environment.keep
  final      = var.environment.final
}
