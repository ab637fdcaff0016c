"""What every controller is made of: the loop, caches, writers, conditions, leadership."""
