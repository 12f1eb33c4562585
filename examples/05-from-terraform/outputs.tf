output "topics" {
  description = "Names of the event topics"
  value       = { for key, topic in kafka_topic.event : key => topic.name }
}

output "partitions" {
  value = sum([for topic in kafka_topic.event : topic.partitions])
}

output "changelog" {
  value = one(kafka_topic.changelog[*].name)
}
