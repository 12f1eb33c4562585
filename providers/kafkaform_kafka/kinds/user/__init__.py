"""`kafka_user_scram_credential`: a user's login by one SCRAM mechanism."""
