environment = {
  bootstrap  = "127.0.0.1:19192"
  cluster_id = "WYxXbJ8uQ0eT2nV4kLr9sA"
  partitions = 6
  keep       = "30d"
  final      = true
}
