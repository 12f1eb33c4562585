output "username" {
  value = kafka_user_scram_credential.this.username
}
