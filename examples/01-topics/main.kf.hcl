# Topics as code. `make demo` walks through this folder on a real broker; to try it by hand:
#
#   kafkaform sandbox up
#   eval "$(kafkaform sandbox env --format shell)"
#   export KF_VAR_bootstrap="$KAFKAFORM_SANDBOX_BOOTSTRAP"
#   kafkaform plan

provider "kafka" {
  bootstrap_servers = [var.bootstrap]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")

  # Brokers keep these two to themselves, and what an ACL means depends on them.
  authorizer {
    super_users     = ["User:admin", "User:broker"]
    allow_if_no_acl = false
  }
}

variable "bootstrap" {
  type        = string
  description = "host:port of one broker; the others are found from it"
}

locals {
  # One line a topic: how many partitions, and for how long records are kept.
  events = {
    clicks   = { partitions = 6, keep = "7d" }
    payments = { partitions = 3, keep = "30d" }
    sessions = { partitions = 3, keep = "12h" }
  }
}

resource "kafka_topic" "events" {
  for_each = local.events

  name       = "shop.${each.key}"
  partitions = each.value.partitions

  config = {
    "cleanup.policy" = "delete"
    "retention.ms"   = retention(each.value.keep)
  }

  owner  = "team-shop"
  labels = { tier = each.key == "payments" ? "gold" : "silver" }
}

output "topics" {
  value = [for topic in kafka_topic.events : topic.name]
}
