# What all folders have in common. Only the platform team can change this file (CODEOWNERS).

repository {
  name  = "acme-kafka"
  owner = "the platform team"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["127.0.0.1:19092"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")
}

# Each team has its own names, and the reader of the mirror.
folders "teams/*" {
  state    = "states/${folder.path}.json"
  owner    = folder.name
  labels   = { team = folder.name }
  uses     = { kafka = cluster.prod }
  policies = ["policies/teams"]

  boundary {
    topics     = ["${folder.name}.*"]
    groups     = ["${folder.name}.*", "mirror"]
    principals = ["User:${folder.name}-*", "User:mirror"]
  }
}

# No boundary: what belongs to nobody, and what crosses the boundaries of teams.
folders "platform" {
  state = "states/platform.json"
  owner = "platform"
  uses  = { kafka = cluster.prod }
}
