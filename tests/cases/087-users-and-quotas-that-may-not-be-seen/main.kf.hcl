provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_user_scram_credential" "ci" {
  username            = "ci"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("P")
}

resource "kafka_quota" "ci" {
  user   = "ci"
  config = { producer_byte_rate = 1 }
}
