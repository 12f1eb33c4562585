# Data sources answer from what is given, so no Streams application has to run.

variables {
  bootstrap = "localhost:9092"
}

given "kafka_topic" "words" {
  name       = "words"
  partitions = 4
}

given "kafka_topic" "changelog" {
  name       = "wordcount-counts-changelog"
  partitions = 4
}

run "finds_the_changelogs" {
  assert {
    condition     = output.changelogs == ["wordcount-counts-changelog"]
    error_message = "The pattern matches the changelog."
  }

  assert {
    condition     = kafka_topic.counts.partitions == data.kafka_topic.words.partitions
    error_message = "The result has as many partitions as the words."
  }
}

run "apply" {
  command = "apply"

  assert {
    condition     = plan.counts.destroy == 0
    error_message = "Topics of others are never deleted."
  }
}
