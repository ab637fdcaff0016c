"""The subscription broker: matches Imports with Exports (cloud native Streams, section 6.4)."""
