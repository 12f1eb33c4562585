# What the providers' resources are in the cluster.
resource "kafka_topic" "orders" {
  name               = "acme.orders"
  partitions         = 3
  replication_factor = 1
  config             = { "retention.ms" = "86400000", "cleanup.policy" = "delete" }
}

resource "kafka_topic" "audit" {
  name               = "acme.audit"
  partitions         = 1
  replication_factor = 1
}

locals {
  acls = toset([
    "User:acme-app|*|Read|Allow|Topic|acme.|Prefixed",
    "User:acme-app|10.0.0.1|Write|Deny|Topic|acme.audit|Literal",
  ])
}

resource "kafka_quota" "app" {
  user   = "acme-app"
  config = { producer_byte_rate = 4000000, request_percentage = 12.5 }
}

resource "kafka_user_scram_credential" "app" {
  username         = "acme-app"
  scram_mechanism  = "SCRAM-SHA-256"
  scram_iterations = 8192
  password         = secret_env("LIVE_PASSWORD")
}
