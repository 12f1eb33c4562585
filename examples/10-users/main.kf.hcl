# Logins: who they are, by which mechanisms, and where their passwords come from.

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

locals {
  # Raise a version to send that password again.
  versions = { billing = 1, reports = 1 }
}

resource "kafka_user_scram_credential" "this" {
  for_each = local.versions

  username            = each.key
  scram_mechanism     = "SCRAM-SHA-512"
  scram_iterations    = 8192
  password            = secret_env("PASSWORD_OF_${upper(each.key)}")
  password_wo_version = each.value
}
