environment = {
  bootstrap  = "127.0.0.1:19092"
  cluster_id = "Aq3mZ5tGSmyR7dK1pHc0Ew"
  prefix     = "dev."
}
