provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_topic" "payments" {
  name               = "payments"
  partitions         = 3
  replication_factor = 3
}

resource "kafka_access" "misspelt" {
  principal = "User:shipping"
  role      = "consumer"
  topics    = ["payments", "ordres"]
}

resource "kafka_access" "as_it_should_be" {
  principal = "User:billing"
  role      = "consumer"
  topics    = ["payments", "orders"]
  group     = "billing"
}

resource "kafka_access" "unknown_user" {
  principal = "User:biling"
  role      = "producer"
  topics    = ["payments"]
}

resource "kafka_access" "certificate" {
  principal = "User:CN=app,O=Acme"
  role      = "producer"
  topics    = ["payments"]
}

resource "kafka_quota" "unknown_user" {
  user   = "shiping"
  config = { producer_byte_rate = 1048576 }
}

resource "kafka_quota" "pattern" {
  user   = "*"
  config = { producer_byte_rate = 1048576 }
}

resource "kafka_quota" "unit" {
  user   = "billing"
  config = { producer_byte_rate = 1 }
}
