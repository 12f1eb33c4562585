data "kafkaform_outputs" "platform" {
  folder = "../../platform"
}

resource "kafka_topic" "clicks" {
  name       = "analytics.clicks"
  partitions = data.kafkaform_outputs.platform.outputs.sizes.large
  config     = { "retention.ms" = retention("3d") }
}

resource "kafka_access" "clicks" {
  principal      = "User:analytics-jobs"
  role           = "streams"
  topic_prefixes = ["analytics."]
  group          = "analytics.sessions"
}
