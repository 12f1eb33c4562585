# What the shop has in each region.

variable "keep" {
  type        = string
  description = "how long records are kept"
}

resource "kafka_topic" "this" {
  for_each = { "orders.created" = 6, "orders.shipped" = 3, "payments.settled" = 3 }

  name       = each.key
  partitions = each.value
  config     = { "retention.ms" = retention(var.keep) }
}

resource "kafka_user_scram_credential" "billing" {
  username            = "billing"
  scram_mechanism     = "SCRAM-SHA-512"
  password            = secret_env("BILLING_PASSWORD")
  password_wo_version = 1
}

resource "kafka_access" "checkout" {
  principal = "User:checkout"
  role      = "producer"
  topics    = [kafka_topic.this["orders.created"].name]
}

resource "kafka_access" "billing" {
  principal      = "User:billing"
  role           = "consumer"
  topic_prefixes = ["orders."]
  group          = "billing"
}

resource "kafka_quota" "billing" {
  user   = "billing"
  config = { consumer_byte_rate = 5 * 1024 * 1024 }
}
