# Who may use how much of the brokers.

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

# Every client of every user has this much, unless something below says otherwise.
resource "kafka_quota" "everybody" {
  user      = "default"
  client_id = "default"
  config    = { producer_byte_rate = 1 * 1024 * 1024, request_percentage = 50 }
}

resource "kafka_quota" "billing" {
  user   = "billing"
  config = { producer_byte_rate = 20 * 1024 * 1024 }
}

resource "kafka_quota" "nightly_export" {
  user      = "billing"
  client_id = "export"
  config    = { consumer_byte_rate = 50 * 1024 * 1024 }
}

resource "kafka_quota" "addresses" {
  ip     = "default"
  config = { connection_creation_rate = 100 }
}
