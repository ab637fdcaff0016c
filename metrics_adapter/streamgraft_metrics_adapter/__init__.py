"""The metrics API server: custom.metrics.k8s.io from Prometheus data, and REST endpoints."""
