provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_quota" "wrong_place" {
  ip     = "192.0.2.7"
  config = { request_percentage = 10 }
}

resource "kafka_quota" "empty" {
  client_id = "c"
  config    = {}
}
