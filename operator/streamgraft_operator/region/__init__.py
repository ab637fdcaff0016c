"""Parallel regions: their width and shards, their autoscalers, and what they report."""
