"""Warm pools: drivers that wait for a job's PEs."""
