"""The routes: each parses, calls the provider, and returns."""
