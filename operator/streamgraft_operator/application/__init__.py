"""The application of a Job: its bundle, the topology of it, and what its settings name."""
