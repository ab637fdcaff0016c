"""Which failures are expected, so that they are reported without a traceback."""


def expected_failures() -> tuple[type[BaseException], ...]:
    """Return the exceptions that say by themselves what is wrong."""
    from streamgraft._errors import StreamgraftError
    from streamgraft.cli._output import CommandError
    from streamgraft_common.bundle import BundleError
    from streamgraft_common.kube import ApiError, Unreachable
    from streamgraft_common.kube.config import ConfigError
    from streamgraft_local.errors import LocalError

    cluster = (ApiError, Unreachable, ConfigError, LocalError)
    return (StreamgraftError, CommandError, BundleError, OSError, *cluster)
