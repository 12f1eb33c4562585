provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  replica_assignment = [[1, 2], [2, 3], [3, 1]]
}
