"""Streamgraft: streaming applications on Kubernetes that scale themselves without pausing."""
