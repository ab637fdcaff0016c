"""From a Job to its topology: its bundle, and what its settings name."""
