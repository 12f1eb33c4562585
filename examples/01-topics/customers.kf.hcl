resource "kafka_topic" "customers" {
  name       = "shop.customers"
  partitions = 3

  config = {
    "cleanup.policy"            = "compact"
    "min.cleanable.dirty.ratio" = "0.1"
  }

  owner = "team-crm"
}

output "customers_id" {
  description = "the broker's own id of the topic"
  value       = kafka_topic.customers.topic_id
}
