kafka_brokers      = ["localhost:9092"]
kafka_user         = "admin"
environment        = "dev"
replication_factor = 1

consumers = [
  "billing",
  "shipping",
]
