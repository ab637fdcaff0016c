"""How many cases each fuzzing test tries: a few in `make test`, thousands in `make fuzz`."""

import os

CASES = int(os.environ.get("FUZZ_CASES", "40"))
