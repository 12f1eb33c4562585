# What jikkou makes of the files in source/.
resource "kafka_topic" "orders" {
  name               = "acme.orders"
  partitions         = 3
  replication_factor = 1
  config = {
    "min.insync.replicas" = "1"
    "cleanup.policy"      = "compact"
    "retention.ms"        = "3600000"
  }
}

resource "kafka_topic" "audit" {
  name               = "acme.audit"
  partitions         = 1
  replication_factor = 1
}

resource "kafka_user_scram_credential" "billing" {
  for_each         = { "SCRAM-SHA-256" = 8192, "SCRAM-SHA-512" = 4096 }
  username         = "acme-billing"
  scram_mechanism  = each.key
  scram_iterations = each.value
  password         = secret_env("LIVE_PASSWORD")
}

resource "kafka_quota" "user" {
  user   = "acme-billing"
  config = { request_percentage = 10, producer_byte_rate = 1024, consumer_byte_rate = 1024 }
}

resource "kafka_quota" "clients" {
  user      = "acme-billing"
  client_id = "default"
  config    = { producer_byte_rate = 512 }
}

resource "kafka_quota" "client" {
  user      = "acme-billing"
  client_id = "acme-app"
  config    = { consumer_byte_rate = 256 }
}

locals {
  acls = toset([
    "User:acme-billing|*|Read|Allow|Topic|acme.|Prefixed",
    "User:acme-billing|*|Describe|Allow|Topic|acme.|Prefixed",
    "User:acme-billing|10.0.0.4|Write|Deny|TransactionalID|acme-tx|Literal",
  ])
}
