provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]
}

# One replica more of each partition.
resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 3
  replication_factor = 3
}

# One replica less; the preferred leaders stay.
resource "kafka_topic" "payments" {
  name               = "payments"
  partitions         = 3
  replication_factor = 2
}
