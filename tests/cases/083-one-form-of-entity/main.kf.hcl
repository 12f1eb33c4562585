provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_quota" "two_forms" {
  entity_type = "user"
  entity_name = "ci"
  client_id   = "app"
  config      = { producer_byte_rate = 1 }
}

resource "kafka_quota" "none" {
  config = { producer_byte_rate = 1 }
}

resource "kafka_quota" "twice" {
  user   = "ci"
  config = { producer_byte_rate = 1 }
}

resource "kafka_quota" "twice_again" {
  entity_type = "user"
  entity_name = "ci"
  config      = { producer_byte_rate = 2 }
}
