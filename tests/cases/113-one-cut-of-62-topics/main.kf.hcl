provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_topic" "audit" {
  for_each           = { for n in range(62) : format("%02d", n) => n }
  name               = "shop.audit-${each.key}"
  partitions         = each.value % 5 + 1
  replication_factor = 3
  config             = { "retention.ms" = 3600000 }
}
