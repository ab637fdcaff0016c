"""Conductors: pure functions from what is observed of several kinds to what should be done.

`pod` and `job` are driven by `controllers.pod_conductor` and `controllers.job_conductor`, `region`
by `controllers.region`; `launches` tells when a PE has to be launched again.
"""
