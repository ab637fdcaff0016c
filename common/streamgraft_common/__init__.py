"""What the components share: resource models, the ADL, names, and the Kubernetes client.

This package imports no other package of the project. It holds data models and thin I/O only;
decisions live in the component that takes them.
"""

VERSION = "0.1.0"
"""Version of Streamgraft; a bundle says which version built it."""
