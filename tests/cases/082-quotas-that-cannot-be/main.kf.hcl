provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_quota" "misspelt" {
  user   = "a"
  config = { producer_rate = 1 }
}

resource "kafka_quota" "zero" {
  user   = "b"
  config = { producer_byte_rate = 0, consumer_byte_rate = 1.5 }
}

resource "kafka_quota" "wrong_place" {
  ip     = "192.0.2.7"
  config = { request_percentage = 10 }
}

resource "kafka_quota" "empty" {
  client_id = "c"
  config    = {}
}
