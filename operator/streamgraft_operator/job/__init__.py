"""Jobs: submitted, kept as their bundle says, reported, deleted."""
