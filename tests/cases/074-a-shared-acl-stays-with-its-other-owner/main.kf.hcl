provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_access" "b" {
  principal = "User:ci"
  role      = "consumer"
  topics    = ["orders"]
}
