"""Savepoints: stages are drained, parked and copied, one after another."""
