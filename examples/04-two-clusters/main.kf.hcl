# Two clusters in one folder: one plan, one state, one review.

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

# The same topics on both sides, from one module.
module "eu" {
  source = "./modules/topics"
  keep   = "30d"
}

module "us" {
  source    = "./modules/topics"
  providers = { kafka = kafka.us }
  keep      = "7d"
}

# And one that is only there.
resource "kafka_topic" "audit" {
  provider   = kafka.us
  name       = "global.audit"
  partitions = 1
  config     = { "cleanup.policy" = "compact" }
}

data "kafka_cluster" "eu" {}

data "kafka_cluster" "us" {
  provider = kafka.us
}

check "two" {
  assert {
    condition     = data.kafka_cluster.eu.cluster_id != data.kafka_cluster.us.cluster_id
    error_message = "Both addresses lead to one cluster."
  }
}

output "topics" {
  value = { eu = module.eu.names, us = concat(module.us.names, [kafka_topic.audit.name]) }
}
