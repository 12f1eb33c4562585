provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}
