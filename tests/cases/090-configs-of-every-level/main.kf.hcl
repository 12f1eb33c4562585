provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_cluster_config" "all" {
  config = {
    "log.cleanup.policy" = ["delete", "compact"]
    "message.max.bytes"  = 2000000
  }
}

resource "kafka_broker_config" "first" {
  broker_id = 1
  config = {
    "log.cleaner.threads"                  = 2
    "listener.name.client.max.connections" = 1000
  }
  secret_config = {
    "listener.name.tls.ssl.keystore.password" = secret_env("KEYSTORE_PASSWORD")
    "my.plugin.token"                         = secret_env("PLUGIN_TOKEN")
  }
  secret_config_version = "1"
}

resource "kafka_group_config" "payments" {
  group  = "payments"
  config = { "consumer.session.timeout.ms" = 50000 }
}

resource "kafka_client_metrics" "producers" {
  name = "producers"
  config = {
    metrics       = ["org.apache.kafka.producer."]
    "interval.ms" = 60000
    match         = ["client_software_name=apache-kafka-java", "client_id=shop-.*"]
  }
}
