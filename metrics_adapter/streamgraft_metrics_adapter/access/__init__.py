"""Who calls, what they may do, and how much of it: before any route."""
