# Topics of a team, and the rules that the team gives itself.

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

resource "kafka_topic" "orders" {
  name       = "shop.sales"
  partitions = 12
  owner      = "team-shop"
  labels     = { tier = "1" }
  config     = { "retention.ms" = retention("7d") }
}

resource "kafka_topic" "clicks" {
  name       = "web.views"
  partitions = 60
  owner      = "team-web"
  config     = { "retention.ms" = retention("1d") }
}

# Rules that come with kafkaform.
policy_set "kafka" {
  enable   = ["topic_owners", "max_partitions", "no_data_loss", "no_wildcard_principals"]
  settings = { max_partitions = 50 }

  waiver {
    addresses = ["kafka_topic.clicks"]
    reason    = "measured: fewer partitions cannot take the clicks of a holiday"
    until     = "2099-12-31"
  }
}

# A rule of one's own.
policy "tiers" {
  severity  = "warning"
  when      = change.type == "kafka_topic" && change.action == "create"
  condition = can(change.labels.tier)
  message   = "${change.key} has no label \"tier\""
}
