"""Processing elements: their resources, launches and pods."""
