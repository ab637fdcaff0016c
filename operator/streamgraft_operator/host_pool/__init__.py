"""Host pools: the nodes that belong to each."""
