provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_quota" "ci" {
  user   = "ci"
  config = { producer_byte_rate = 2000, request_percentage = null }
}

resource "kafka_quota" "gone_outside" {
  client_id = "app"
  config    = { consumer_byte_rate = 7 }
}

removed {
  from = kafka_quota.old

  lifecycle {
    destroy = true
  }
}
