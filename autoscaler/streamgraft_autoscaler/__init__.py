"""Signals and policies: a pure library that knows neither Kubernetes nor Prometheus."""
