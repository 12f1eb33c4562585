# How many replicas, and where: a change of either moves data, and the plan shows where to.

provider "kafka" {
  bootstrap_servers     = split(",", var.bootstrap)
  security_protocol     = "SASL_PLAINTEXT"
  sasl_mechanism        = "PLAIN"
  sasl_username         = "admin"
  sasl_password         = secret_env("KAFKAFORM_SANDBOX_PASSWORD")
  reassignment_throttle = "50MiB" # bytes a second and broker, for the time of a move
}

variable "bootstrap" {
  type        = string
  description = "host:port of the brokers, with commas"
}

variable "replicas" {
  type    = number
  default = 1
}

# Where its replicas go is computed: as little as possible moves, every rack gets its share.
resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 6
  replication_factor = var.replicas
}

# Where its replicas are is said, broker by broker; the first of each partition is the preferred
# leader.
resource "kafka_topic" "audit" {
  name               = "audit"
  replica_assignment = [[1, 2], [2, 3], [3, 1]]
}

# Says neither: nothing here ever moves it.
resource "kafka_topic" "metrics" {
  name       = "metrics"
  partitions = 3
}
