provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

variable "passwords" {
  type      = map(string)
  default   = { ci = "a-password-that-nobody-may-see" }
  sensitive = true
}

resource "kafka_user_scram_credential" "ci" {
  username        = "ci"
  scram_mechanism = "SCRAM-SHA-256"
  password        = var.passwords["ci"]
}

resource "kafka_user_scram_credential" "bot" {
  username        = "bot"
  scram_mechanism = "SCRAM-SHA-256"
  password        = secret_env("BOT_PASSWORD")
}

resource "kafka_user_scram_credential" "web" {
  username        = "web"
  scram_mechanism = "SCRAM-SHA-256"
  password        = secret_file("web.password")
}
