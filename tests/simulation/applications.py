"""The small applications that simulated users submit: source, a region of 2 to 4 shards, sink."""

import base64
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.operator.integration.world import application, bundle

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import read_bundle
from streamgraft_common.kinds import CONFIG_MAP
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import HOST_POOL, JOB

NAMESPACE = "test"
SOURCE_TOPIC = f"{NAMESPACE}-in"
SINK_TOPIC = f"{NAMESPACE}-out"
FOREIGN_TOPIC = f"{NAMESPACE}.job.theirs"
"""Named as if it were of the job `job`, but a user made it."""
OUTSIDE_PES = 2
POOL = "pool"
TAG = "fast"


@dataclass(frozen=True)
class Submission:
    """A job as its user wants it at the moment."""

    job: str
    stages: int
    """Operators in the region; more than one makes as many PEs of a channel."""
    max_width: int
    width: int
    version: int = 1
    """Version of the code of the region's last operator; each makes another bundle."""
    speed: int = 1
    """A submission-time parameter."""
    deadline: int = 300
    """Seconds after which a width change that is not there is rolled back."""
    pooled: bool = False
    """Whether the region runs on the nodes of a host pool."""
    sleepy: bool = False
    """Whether the region may have width 0."""
    strategy: str = "handover"
    """How the region changes its width."""
    consistent: bool = False
    """Whether all between the first source and the sink is a consistent region."""
    region: str = "c"
    """Name of the consistent region; with '' it is dropped, and all else stays."""
    falls_back: bool = False
    """Whether that goes back to its last cut whenever a pod of it fails."""
    sources: int = 1
    """A second one comes first, with a sink of its own: all PEs have other ids then. Such a job
    declares a Service, too."""
    chained: bool = False
    """Whether two functions, fused with it, are between the second source and its sink."""
    kept: str = "count"
    """What the operators of the region keep for each key."""
    built_with: int = 0
    """The speed that the bundle was built with; 0: no plan of an operator reads it."""
    joint: tuple[str, ...] = ()
    """Operators of the region whose stages run one query over all shards of a channel."""
    loose: bool = False
    """Whether the first operator of the region writes in real time, at least once."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields of the Job's spec."""

    @property
    def serves(self) -> bool:
        """Whether it declares a Service."""
        return self.sources > 1

    @property
    def content(self) -> bytes:
        """The bundle."""
        flags = self.pooled, self.sleepy, self.consistent, self.falls_back
        more = self.sources, self.chained, self.kept, self.region, self.built_with
        ways = self.joint, self.loose
        return _bundle(self.stages, self.max_width, self.version, *flags, *more, *ways)

    @property
    def digest(self) -> str:
        """The sha256 of the bundle."""
        return _digest(self.content)

    def bundle_map(self) -> Object:
        """Return the ConfigMap that carries the bundle."""
        return {
            "apiVersion": CONFIG_MAP.api_version,
            "kind": CONFIG_MAP.kind,
            "metadata": {"name": f"{self.job}-bundle", "namespace": NAMESPACE},
            "binaryData": {"bundle.zip": base64.b64encode(self.content).decode()},
        }

    def manifest(self) -> Object:
        """Return the Job."""
        spec: Object = {
            "bundle": {"configMap": {"name": f"{self.job}-bundle"}, "digest": self.digest},
            "parameters": {"speed": str(self.speed)},
            "dropState": ["second"],
            "regions": {
                "r": {
                    "width": self.width,
                    "changeDeadlineSeconds": self.deadline,
                    "strategy": self.strategy,
                }
            },
            **self.extra,
        }
        if self.stages > 1:
            spec["fusion"] = {"type": "legacy"}
        return {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {"name": self.job, "namespace": NAMESPACE},
            "spec": spec,
        }

    @property
    def warm_pool(self) -> int:
        """The number of pods that wait for a PE."""
        return int(self.extra.get("warmPool", 0))

    def pe_ids(self, width: int) -> set[int]:
        """Return the ids of all PEs at a width (docs/develop/contracts.md)."""
        return set(range(OUTSIDE_PES + self.sources - 1 + width * self.stages))


def host_pool() -> Object:
    """Return the HostPool: one of the nodes with the tag."""
    return {
        "apiVersion": HOST_POOL.api_version,
        "kind": HOST_POOL.kind,
        "metadata": {"name": POOL, "namespace": NAMESPACE},
        "spec": {"tags": [TAG], "size": 1},
    }


def node(number: int) -> Object:
    """Return a node; all have the tag at first."""
    labels = {f"{names.LABEL_TAG}/{TAG}": ""}
    return {"metadata": {"name": f"node-{number}", "labels": labels}}


@cache
def _bundle(
    stages: int,
    max_width: int,
    version: int,
    pooled: bool,
    sleepy: bool,
    consistent: bool,
    falls_back: bool,
    sources: int,
    chained: bool,
    kept: str,
    consistent_region: str,
    built_with: int,
    joint: tuple[str, ...],
    loose: bool,
) -> bytes:
    adl = application(NAMESPACE, builtBy=f"0.0.{version}")
    read, work, write = adl["operators"]
    work |= {"function": "work", "code": "as it was" if stages > 1 else str(version)}
    work["stateful"] = True
    key, value = ({"name": name, "type": "bigint"} for name in ("key", kept))
    work["state"] = [{"operator": "stateStoreSave", "key": [key], "value": [value]}]
    work["parameters"] = {"speed": str(built_with)} if built_with else {}
    if pooled:
        work["placement"] = {"hostPool": POOL}
    second = {**work, "name": "second", "inputs": ["middle"], "code": str(version)}
    work |= {"realTime": True, "delivery": "at_least_once"} if loose else {}
    adl["operators"] = [read, work, write]
    raw, done = adl["streams"]
    middle = {**done, "name": "middle", "producer": "work"}
    if stages > 1:
        adl["operators"] = [read, {**work, "outputs": ["middle"]}, second, write]
        done = {**done, "producer": "second"}
        adl["streams"] = [raw, middle, done]
    for operator in adl["operators"]:
        if operator["name"] in joint:
            operator["jointState"] = True
    if consistent:
        members = [operator["name"] for operator in adl["operators"]]
        asked: dict[str, Any] = {"name": consistent_region, "operators": members}
        asked |= {"trigger": "operatorDriven", "drainTimeoutSeconds": 60, "retainedCuts": 2}
        asked |= {"rollBackOn": "failure"} if falls_back else {}
        adl["consistentRegions"] = [asked] if consistent_region else []
        adl["operators"][-1] = {**write, "commits": True}
    if sources > 1:
        other = {**read, "name": "other", "outputs": ["more"]}
        functions = [
            {**other, "kind": "function", "name": name, "inputs": [stream], "outputs": [name]}
            for name, stream in (("first", "more"), ("next", "first"))
            if chained
        ]
        for function in functions:
            function.pop("kafka", None)
        last = functions[-1]["name"] if functions else "more"
        adl["operators"][:0] = [other, *functions, {**write, "name": "copy", "inputs": [last]}]
        adl["streams"].append({**raw, "name": "more", "producer": "other"})
        adl["streams"] += [
            {**raw, "name": item["name"], "producer": item["name"]} for item in functions
        ]
        adl["services"] = [{"name": "api", "operator": "work", "port": service_port(version)}]
    region = {"name": "r", "key": ["key"], "width": 1, "maxWidth": max_width}
    adl["regions"] = [{**region, "autoscaling": {"minWidth": 0}} if sleepy else region]
    return register(bundle(adl))


def is_joint(digest: str, stage: str) -> bool:
    """Return whether a stage of a bundle that was submitted runs one query over all shards of a
    channel. Each operator of a region is a stage."""
    return any(item.joint_state for item in adl_of(digest).operators if item.name == stage)


def service_port(version: int) -> int:
    """Return the port of the Service that jobs with two sources declare: each edit has another."""
    return 8000 + version


def register(content: bytes) -> bytes:
    """Have PEs find the application in a bundle, which is returned."""
    found = read_bundle(content)
    _ADLS[found.digest] = found.adl
    return content


_ADLS: dict[str, Adl] = {}


def adl_of(digest: str) -> Adl:
    """Return the application in a bundle that was submitted, by its sha256."""
    return _ADLS[digest]


@cache
def _digest(content: bytes) -> str:
    return read_bundle(content).digest
