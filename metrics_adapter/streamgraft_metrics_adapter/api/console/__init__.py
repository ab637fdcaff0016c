"""The console: its page, and what the page reads and writes in the name of who is signed in."""
