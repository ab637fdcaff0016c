"""Metrics of the configuration: PromQL rules, read, checked and evaluated."""
