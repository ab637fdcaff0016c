"""What is asked of Prometheus, and what one refresh of answers says of each region."""
