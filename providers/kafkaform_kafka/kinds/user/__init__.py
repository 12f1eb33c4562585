"""`kafka_user_scram_credential`: a user's credential for one SCRAM mechanism."""
