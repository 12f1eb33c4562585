provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_broker_config" "first" {
  broker_id = 1
  config    = { "log.cleaner.threads" = 3 }
}

resource "kafka_cluster_config" "all" {
  config = { "log.cleaner.threads" = 2 }
}

resource "kafka_group_config" "payments" {
  group  = "payments"
  config = { "consumer.session.timeout.ms" = 50000 }
}
