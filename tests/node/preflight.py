"""What a machine needs for a node of its own, and what this one lacks."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "conntrack": "conntrack",
    "iptables": "iptables",
    "ip": "iproute2",
    "debootstrap": "debootstrap",
    "unshare": "util-linux",
}
"""Debian package by program."""
_PLUGINS = Path("/usr/lib/cni/bridge")
_PYTHON = (3, 11)
"""Of Debian bookworm, in the image: wheels made here must suit it."""


def problems() -> list[str]:
    """Return why no node can run here, each with what mends it; empty if one can."""
    return list(_problems())


def _problems() -> Iterator[str]:
    if sys.platform != "linux":
        yield f"a node needs Linux, this is {sys.platform}"
        return
    if os.geteuid() != 0:
        yield "a node needs root"
        return
    missing = {package for program, package in PACKAGES.items() if not shutil.which(program)}
    if not _PLUGINS.exists():
        missing.add("containernetworking-plugins")
    if missing:
        yield f"programs are missing: apt-get install {' '.join(sorted(missing))}"
    if sys.version_info[:2] != _PYTHON:
        yield "the image is made with Python 3.11: make PYTHON=/path/to/python3.11 test-node"
    if not (CGROUPS / "memory").is_dir():
        yield f"{CGROUPS} has no cgroups of version 1: version 2 was not tried"
    if "unshare" not in missing and (reason := _refused()):
        yield f"namespaces, a bridge or an overlay are refused here: {reason}"


def _refused() -> str:
    """Return why the kernel makes no namespaces with a bridge, nftables and overlays in them."""
    trial = (
        "ip link add trial type bridge && nft add table ip trial && mount -t tmpfs tmpfs /mnt"
        " && mkdir /mnt/a /mnt/b /mnt/c /mnt/d"
        " && mount -t overlay overlay -o lowerdir=/mnt/a,upperdir=/mnt/b,workdir=/mnt/c /mnt/d"
    )
    command = ("unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--mount-proc")
    done = subprocess.run([*command, "sh", "-c", trial], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""
