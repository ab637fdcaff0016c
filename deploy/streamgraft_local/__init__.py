"""The embedded environment: a real control plane, Kafka, Prometheus and a process node."""
