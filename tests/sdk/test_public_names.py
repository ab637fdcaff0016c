"""What `import streamgraft` promises."""

import streamgraft


def test_all_is_complete_and_sorted() -> None:
    """Every public name is listed, and exists."""
    assert streamgraft.__all__ == sorted(streamgraft.__all__)
    errors = {
        name
        for name, value in vars(streamgraft._errors).items()
        if isinstance(value, type) and issubclass(value, streamgraft.StreamgraftError)
    }
    assert errors <= set(streamgraft.__all__)
    assert all(hasattr(streamgraft, name) for name in streamgraft.__all__)
