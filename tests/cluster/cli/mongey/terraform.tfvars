replication_factor = 1
throttle_everybody = true

streams = {
  orders = {
    partitions = 6
  }
  customers = {
    partitions = 3
    compacted  = true
  }
  clicks = {
    partitions     = 4
    retention_days = 1
  }
}
