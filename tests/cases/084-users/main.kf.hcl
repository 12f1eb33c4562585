provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_user_scram_credential" "both_256" {
  username            = "new"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("NEW_PASSWORD")
  password_wo_version = 1
}

resource "kafka_user_scram_credential" "both_512" {
  username            = "new"
  scram_mechanism     = "SCRAM-SHA-512"
  scram_iterations    = 8192
  password_wo         = secret_command(["cat", "new.password"])
}

resource "kafka_user_scram_credential" "raised" {
  username            = "raised"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("RAISED_PASSWORD")
  password_wo_version = 2
}

resource "kafka_user_scram_credential" "stronger" {
  username            = "stronger"
  scram_mechanism     = "SCRAM-SHA-512"
  scram_iterations    = 16384
  password            = secret_env("STRONGER_PASSWORD")
}

resource "kafka_user_scram_credential" "same" {
  username            = "same"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("RENAMED_PASSWORD")
  password_wo_version = "a"
}

resource "kafka_user_scram_credential" "taken" {
  username            = "taken"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("TAKEN_PASSWORD")

  lifecycle {
    adopt = true
  }
}

removed {
  from = kafka_user_scram_credential.old

  lifecycle {
    destroy = true
  }
}
