"""Linux as a process of ours, with a kernel NFS server and two mounts of it.

Where tests run there may be no NFS in the kernel: user-mode-linux brings a kernel that has it. Its
root is this machine's, so that the guest runs our own code. The packages are Debian's, unpacked
into the cache and not installed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamgraft_local import paths
from streamgraft_local.locks import exclusive

PACKAGES = (
    *("user-mode-linux", "nfs-kernel-server", "nfs-common", "kmod", "libtirpc3", "libnfsidmap1"),
    *("libkeyutils1", "libevent-core-2.1-7", "libdevmapper1.02.1", "libwrap0", "libkmod2"),
)
SCRIPT = Path(__file__).with_name("guest.sh")


def packages() -> Path:
    """Return the folder with the unpacked packages; skips the test where there is no apt."""
    if shutil.which("apt-get") is None:
        pytest.skip("the packages for a guest with NFS are fetched with apt-get")
    folder = paths.cache_folder() / "nfs-guest"
    with exclusive(paths.cache_folder() / "locks" / "nfs-guest"):
        if not (folder / "complete").exists():
            _unpack(folder)
    return folder


def _unpack(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, check=True, capture_output=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        package.unlink()
    uml = folder / "usr" / "lib" / "uml" / "modules"
    (folder / "usr" / "lib" / "modules").symlink_to(uml)
    for tool in ("modprobe", "depmod"):  # kmod does what it is called
        (folder / "bin" / tool).symlink_to(folder / "bin" / "kmod")
    (version,) = uml.iterdir()
    libraries = f"{folder}/usr/lib/x86_64-linux-gnu:{folder}/lib/x86_64-linux-gnu"
    subprocess.run(
        [folder / "bin" / "depmod", "-b", folder / "usr", version.name],
        env={**os.environ, "LD_LIBRARY_PATH": libraries},
        check=True,
    )
    (folder / "complete").touch()


def run(options: str, script: Path, *arguments: str, seconds: float = 900.0) -> str:
    """Run a Python script in a guest; its folders /mnt/a and /mnt/b are mounts of one NFS export.

    `options`: further mount options. Returns what the script printed.
    """
    found = packages()
    command = ",,".join((sys.executable, str(script), *arguments))
    kernel = [
        *(str(found / "usr" / "bin" / "linux.uml"), "mem=512M", "root=/dev/root"),
        *("rootfstype=hostfs", "rootflags=/", "rw", "init=/bin/bash", "con=null"),
        *(
            "con0=fd:0,fd:1",
            f"packages={found}",
            f"options={options}",
            f"script={command}",
            "--",
            str(SCRIPT),
        ),
    ]
    done = subprocess.run(
        kernel, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
    )
    _, began, rest = done.stdout.partition("BEGIN\n")
    assert began, done.stdout[-4000:]
    printed, ended, _ = rest.partition("END\n")
    assert ended, rest[-4000:]
    return printed
