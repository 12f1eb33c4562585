resource "kafka_topic" "clicks" {
  name       = "analytics.clicks"
  partitions = 6
  config     = { "retention.ms" = retention("3d") }
}

resource "kafka_access" "clicks" {
  principal      = "User:analytics-jobs"
  role           = "streams"
  topic_prefixes = ["analytics."]
  group          = "analytics.sessions"
}
