provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_quota" "named" {
  entity_type = "user"
  entity_name = "default"
  config      = { producer_byte_rate = 1048576 }
}

resource "kafka_quota" "everybody" {
  entity_type = "user"
  config      = { request_percentage = "12.5" }
}

resource "kafka_quota" "both" {
  user      = "ci"
  client_id = "default"
  config    = { consumer_byte_rate = 2097152, controller_mutation_rate = 5 }
}

resource "kafka_quota" "addresses" {
  ip     = "default"
  config = { connection_creation_rate = 20 }
}
