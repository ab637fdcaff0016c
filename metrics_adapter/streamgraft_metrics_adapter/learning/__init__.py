"""What is learned of regions over time: capacities, pauses, needs and forecasts."""
