"""A delay service for Kafka: three designs that forward records to their topics when they are due."""
