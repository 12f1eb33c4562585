# Rules for the plans of all teams, beside their own. No team can change or waive them.

policy "retention" {
  description = "The disks are planned for two weeks."
  settings    = { most = 14 * 24 * 60 * 60 * 1000 }

  when      = change.type == "kafka_topic" && change.after != null
  condition = try(tonumber(change.after.config["retention.ms"]) <= setting.most, false)
  message   = "a topic of a team says for how long it keeps records: for two weeks at most"
}
