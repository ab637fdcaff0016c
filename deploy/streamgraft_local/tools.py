"""Paths of the programs and jars that a cluster runs."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Tools(BaseModel):
    """Everything that `toolchain.prepare` found, built or fetched."""

    model_config = ConfigDict(frozen=True)

    controlplane: Path
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one binary."""
    prometheus: Path
    java: Path
    kafka_jars: Path
    """Folder with the Kafka broker's jars."""
    driver_jars: Path
    """Folder with the jars that follow Spark's own: its Kafka connector, and ours."""
    cds_archive: Path | None
    """AppCDS archive of a PE's driver; None if this Java can't have one."""
