"""The documentation's site: what mkdocs.yml calls, and the pages that are made from the code."""
