"""The Kafka of jobs: topics, positions, transport security."""
