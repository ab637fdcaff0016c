"""Lists of brokers as users write them: the same ones, however they are written. Pure."""


def addresses(servers: str) -> list[str]:
    """Return the addresses in a list of brokers, each once, in one order."""
    found = (address.strip().lower() for address in servers.split(","))
    return sorted(set(filter(None, found)))
