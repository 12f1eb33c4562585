"""A store of objects on this computer that speaks S3, and can misbehave."""
