"""Lines of made-up text, the same for a seed: `python -m examples.wordcount.lines`."""

import random
from collections.abc import Iterator

from examples.sending import Record, send

TOPIC = "lines"
_WORDS = ("stream", "graft", "of", "pods", "that", "scale", "themselves", "without", "a", "pause")


def lines(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield so many lines; some words are far more frequent than others."""
    chance = random.Random(seed)
    weights = [1 / place for place in range(1, len(_WORDS) + 1)]
    for _ in range(count):
        yield TOPIC, {"text": " ".join(chance.choices(_WORDS, weights, k=8)).capitalize() + "."}


if __name__ == "__main__":
    send(lines)
