provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

# An undeclared config and an undeclared secret go; a throttle and a config with null stay.
resource "kafka_broker_config" "first" {
  broker_id = 1
  config = {
    "log.cleaner.threads" = 3
    "num.io.threads"      = null
  }
}

# Eligible leader replicas keep min.insync.replicas, although nobody declares it.
resource "kafka_cluster_config" "all" {
  config      = { "log.cleaner.threads" = 2 }
  config_mode = "authoritative"
}

resource "kafka_group_config" "payments" {
  group       = "payments"
  config      = { "consumer.session.timeout.ms" = 55000 }
  config_mode = "additive"
}
