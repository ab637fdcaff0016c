"""The control plane: controllers, conductors and coordinators over pure graph code."""
