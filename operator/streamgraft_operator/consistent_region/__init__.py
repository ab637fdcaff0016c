"""Consistent regions: parts of a job that are checkpointed together, again and again."""
