provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_broker_config" "first" {
  broker_id = 1
  config = {
    "listener.name.tls.ssl.keystore.password" = "hunter2"
    "my.plugin.token"                         = "hunter3"
  }
  secret_config = { "background.threads" = secret_env("THREADS") }
}
