"""What is answered: the metrics APIs, REST, health and the adapter's own metrics."""
