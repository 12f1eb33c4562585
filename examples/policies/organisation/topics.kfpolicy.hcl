# Rules for all teams. `--policy organisation` adds them, and no configuration can change or waive them.

policy_set "kafka" {
  enable   = ["topic_names", "no_deletion_with_records"]
  settings = { topic_name_pattern = "^(shop|web)\\.[a-z-]+$" }
}

policy "week" {
  description = "Orders are kept for at least a week, because billing reads them again."
  settings    = { least = 7 * 24 * 60 * 60 * 1000 }

  when      = change.key == "shop.sales" && change.after != null
  condition = try(tonumber(change.after.config["retention.ms"]) >= setting.least, false)
  message   = "billing needs the orders of the last week"
}
