"""How large a record on its way between PEs may be."""

LARGEST_RECORD_BYTES = 16 * 2**20
"""As JSON, with its key. Kafka's own limits are 1 MiB: of producers, and of topics by default."""
