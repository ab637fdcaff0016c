"""Objects that nobody works on, and why: their Job is not there, or they can't be read."""
