# One module, many topics: the house rules for a stream stand in modules/stream, once.

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

module "streams" {
  source   = "./modules/stream"
  for_each = { orders = "30d", refunds = "90d" }

  name  = "billing.${each.key}"
  keep  = each.value
  owner = "team-billing"
}

module "clicks" {
  source = "./modules/stream"

  name       = "web.clicks"
  owner      = "team-web"
  partitions = 6
  retries    = false
}

# The configuration moved on from plain blocks to the module: nothing is deleted or made again.
moved {
  from = kafka_topic.clicks
  to   = module.clicks.kafka_topic.stream
}

output "topics" {
  value = sort(flatten([module.clicks.topics, [for stream in module.streams : stream.topics]]))
}

check "names" {
  assert {
    condition     = alltrue([for name in module.clicks.topics : startswith(name, "web.")])
    error_message = "Topics of the web team begin with web."
  }
}
