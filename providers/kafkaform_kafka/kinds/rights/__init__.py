"""`kafka_rights`: what the cluster says that we may do. It is only listed, for reviews."""
