# What `bot.py` keeps as it is written here; README.md says how to run it.

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

variable "teams" {
  type        = map(number)
  description = "team -> how many partitions its inbox has"
  default     = { crm = 3, billing = 6 }
}

resource "kafka_topic" "inbox" {
  for_each = var.teams

  name       = "inbox.${each.key}"
  partitions = each.value
  owner      = "team-${each.key}"

  config = {
    "retention.ms" = retention("3d")
  }
}
