# An inventory that other people and programs edit: one topic for each entry of topics.yaml.

provider "kafka" {
  bootstrap_servers = [var.bootstrap]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")
}

variable "bootstrap" {
  type        = string
  description = "host:port of one broker; the others are found from it"
}

locals {
  inventory = yamldecode(file("${path.module}/topics.yaml"))
}

resource "kafka_topic" "this" {
  for_each = { for topic in local.inventory.topics : topic.name => topic }

  name       = each.key
  partitions = try(each.value.partitions, local.inventory.defaults.partitions)
  owner      = each.value.owner

  config = merge(
    { "retention.ms" = retention(try(each.value.keep, local.inventory.defaults.keep)) },
    try(each.value.compact, false) ? { "cleanup.policy" = "compact" } : {},
  )
}

output "owners" {
  description = "who has which topics"
  value       = { for topic in local.inventory.topics : topic.owner => topic.name... }
}
