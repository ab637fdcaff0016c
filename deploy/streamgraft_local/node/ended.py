"""Logs of pods that are gone: kept for a while, since what failed is what one wants to read."""

import shutil
from pathlib import Path

from streamgraft_local.node.scratch import remove_scratch

KEPT_PODS = 50


def archive(pod: Path, ended: Path) -> None:
    """Remove a pod's folders; its log files move to a folder of the same name below `ended`.

    The oldest pods go once there are more than KEPT_PODS.
    """
    remove_scratch(pod)
    logs = [path for path in pod.glob("*/*.log") if path.stat().st_size]
    for log in logs:
        target = ended / pod.name / log.parent.name
        target.mkdir(parents=True, exist_ok=True)
        log.replace(target / log.name)
    shutil.rmtree(pod, ignore_errors=True)
    if logs:
        _forget_oldest(ended)


def _forget_oldest(ended: Path) -> None:
    pods = sorted(ended.iterdir(), key=lambda path: path.stat().st_mtime)
    for pod in pods[: max(0, len(pods) - KEPT_PODS)]:
        shutil.rmtree(pod, ignore_errors=True)
