provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_user_scram_credential" "literal" {
  username            = "a"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = "hunter2"
}

resource "kafka_user_scram_credential" "none" {
  username            = "b"
  scram_mechanism     = "SCRAM-SHA-256"
}

resource "kafka_user_scram_credential" "mechanism" {
  username            = "c"
  scram_mechanism     = "SCRAM-SHA-1"
  password            = secret_env("P")
}
