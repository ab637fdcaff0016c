"""Test suites: their tests, each in a pod of its own."""
