# Dynamic configs: what all brokers share, what one broker has of its own, and those of groups.

provider "kafka" {
  bootstrap_servers = [var.bootstrap]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")
}

variable "bootstrap" {
  type        = string
  description = "host:port of one broker; the others are found from it"
}

# Of all brokers, over what their server.properties say.
resource "kafka_cluster_config" "all" {
  config = {
    "log.cleanup.policy" = ["delete", "compact"]
    "log.retention.ms"   = retention("30d")
    "background.threads" = 12
  }
}

# Of one broker, over what all brokers share. The password is sent when its version changes.
resource "kafka_broker_config" "first" {
  broker_id = 1

  config = {
    "background.threads"                   = 16
    "listener.name.client.max.connections" = 2000
  }

  secret_config = {
    "listener.name.reserve.ssl.keystore.password" = secret_env("KEYSTORE_PASSWORD")
  }
  secret_config_version = "2026-01"
}

# Of a group, which need not exist yet.
resource "kafka_group_config" "payments" {
  group  = "payments"
  config = { "consumer.session.timeout.ms" = 50000 }
}

# Which metrics the clients of some applications send to the brokers (KIP-714).
resource "kafka_client_metrics" "shop" {
  name = "shop-producers"
  config = {
    "interval.ms" = 60000
    "match"       = ["client_id=shop-.*"]
    "metrics"     = ["org.apache.kafka.producer."]
  }
}

# A topic that leaves its retention to the cluster, and whatever others set for flush.ms to them.
resource "kafka_topic" "orders" {
  name       = "configs.orders"
  partitions = 1
  config     = { "cleanup.policy" = ["delete"], "flush.ms" = null }
}

# Which configs of broker 1 hold a secret; what they hold, nobody can see.
output "secrets_of_the_first" {
  value = keys(kafka_broker_config.first.secret_keys)
}
