provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_user_scram_credential" "weak" {
  username            = "weak"
  scram_mechanism     = "SCRAM-SHA-256"
  scram_iterations    = 1000
  password            = secret_env("P")
}
