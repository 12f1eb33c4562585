provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_broker_config" "first" {
  broker_id = 1
  config = {
    "ssl.keystore.location" = "/etc/kafka/keystore.p12"
    "min.insync.replicas"   = 2
  }
}

resource "kafka_cluster_config" "all" {
  config = {
    "listeners"         = ["CLIENT://:9092"]
    "log.frobnicate"    = 2
    "message.max.bytes" = -2
  }
}

resource "kafka_group_config" "payments" {
  group  = "payments"
  config = { "consumer.session.timeout.ms" = 0 }
}

resource "kafka_client_metrics" "producers" {
  name   = "producers"
  config = { "interval.ms" = 10, match = ["shoe_size=x"] }
}

resource "kafka_broker_config" "down" {
  broker_id = 9
  config    = { "log.cleaner.threads" = 2 }
}
