"""Kinds that exist as schema only."""
