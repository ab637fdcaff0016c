"""What runs in the pod of a PE: the plan of its operators as Spark queries, one per shard."""
