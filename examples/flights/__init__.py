"""The flights of New York, 2013: an application, its data, and the demo that runs it."""
