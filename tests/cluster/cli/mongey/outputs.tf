output "streams" {
  value = { for name, stream in module.stream : name => stream.name }
}

output "facts_partitions" {
  value = data.kafka_topic.facts.partitions
}
