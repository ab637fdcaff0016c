"""Runs in the guest: two clients of one NFS server make the same entries of a log.

Prints JSON: how many names were won by both clients or by none, how many were read with another
text than the winner's, and for how many seconds a client took an entry for absent that it had
looked for before.
"""

import json
import sys
import threading
import time
from pathlib import Path

from streamgraft_pe_runtime.exclusive_files import create

CLIENTS = (Path("/mnt/a"), Path("/mnt/b"))


def main(names: int) -> None:
    """Race for so many names, then look at the caches."""
    barrier = threading.Barrier(len(CLIENTS))
    won: dict[Path, list[bool]] = {}
    read: dict[Path, list[str]] = {}

    def race(client: Path) -> None:
        won[client], read[client] = [], []
        for number in range(names):
            entry = client / "queries" / str(number)
            entry.exists()  # the client remembers that it is not there
            barrier.wait()
            won[client].append(create(entry, client.name))
            read[client].append(entry.read_text())

    threads = [threading.Thread(target=race, args=(client,)) for client in CLIENTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = CLIENTS
    owners = [first.name if mine else second.name for mine in won[first]]
    figures = {
        "names": len(owners),
        "both_or_none": sum(a == b for a, b in zip(won[first], won[second], strict=True)),
        "read_wrongly": sum(found != owners for found in read.values()),
        "remembered_seconds": _remembered_seconds(),
    }
    print(json.dumps(figures), flush=True)


def _remembered_seconds() -> float:
    maker, looker = (client / "queries" / "late" for client in CLIENTS)
    assert not looker.exists()
    assert create(maker, "a")
    made = time.monotonic()
    assert not create(looker, "b"), "a client that remembers no entry must not make a second one"
    looked = CLIENTS[1] / "queries" / "later"
    assert not looked.exists()
    assert create(CLIENTS[0] / "queries" / "later", "a")
    made = time.monotonic()
    while not looked.exists():
        time.sleep(0.1)
    return time.monotonic() - made


if __name__ == "__main__":
    main(int(sys.argv[1]))
