"""Names: hierarchical, deterministic, computed and never stored.

A PE is `<job>-<pe id>`, its pod `<job>-<pe id>-<launch count>`. PE ids are local to the job and
port ids local to the PE (cloud native Streams, section 6.3), so nothing global is ever allocated.

Different things of one kind never have one name. A long job name is shortened, with a hash behind a
double hyphen, which no name that is used as it is contains.
"""

import hashlib
import re

GROUP = "streamgraft.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

LABEL_JOB = f"{GROUP}/job"
LABEL_PE = f"{GROUP}/pe"
LABEL_REGION = f"{GROUP}/region"
LABEL_CHANNEL = f"{GROUP}/channel"
LABEL_STAGE = f"{GROUP}/stage"
"""Index of the PE within its channel: 0 for the first. A region's selector asks for stage 0, so
it matches exactly one pod per channel."""
LABEL_STAGE_NAME = f"{GROUP}/stage-name"
"""Name of the stage that a PE and its pod are of: whose checkpoints the pod may write."""
LABEL_HOST_POOL = f"{GROUP}/host-pool"
"""HostPool that a pod was placed in."""
LABEL_COLOCATE = f"colocate.{GROUP}"
LABEL_EXLOCATE = f"exlocate.{GROUP}"
"""Prefix of the label of a placement token: `<prefix>/<token>`, its value the job."""
LABEL_TAG = f"tag.{GROUP}"
"""Prefix of the labels that give a node its tags: `<prefix>/<tag>`."""
LABEL_TEST_SUITE = f"{GROUP}/test-suite"
"""TestSuite that a pod runs a test of."""
LABEL_SCENARIO = f"{GROUP}/scenario"
"""Name of the test that a pod of a TestSuite runs."""
LABEL_SERVICE = f"{GROUP}/service"
"""On Services that an application declares: the name that it has there."""
LABEL_LAUNCH = f"{GROUP}/launch"
LABEL_POOL = f"{GROUP}/pool"
"""On a warm pod that no PE has yet: such pods wait for any PE of the job."""
POOL_WARM = "warm"
LABEL_GENERATION = f"{GROUP}/generation"
"""Generation id of the job's graph that last wrote the object: equal content is not written."""
ANNOTATION_CONTENT = f"{GROUP}/content-id"
"""Hash of an object's generated content; equal hashes mean that nothing needs a restart."""
ANNOTATION_SAVEPOINT = f"{GROUP}/savepoint"
"""Which savepoint a PE's ConfigMap names: that is no part of its content."""
ANNOTATION_CHECKPOINTS = f"{GROUP}/checkpoints"
"""On a job's ConfigMap: the volume that its checkpoints are on, as JSON."""
ANNOTATION_GENERATION = f"{GROUP}/job-generation"
"""metadata.generation of the Job whose version a ConfigMap notes."""
ANNOTATION_SOURCE = f"{GROUP}/bundle-source"
"""Hash of the address that a bundle was fetched from."""
ANNOTATION_CHANGES = f"{GROUP}/stream-changes"
"""On Exports and Imports: ids of the changes by functions that are applied, by PE and field."""
ANNOTATION_SUBMITTED = f"{GROUP}/submitted-at"
"""On Jobs: when one was submitted last. With another value it takes up the operator's image, as
behind an edit, though its spec be the same."""
ANNOTATION_SCHEME = f"{GROUP}/control-scheme"
"""`https` on pods whose control port has TLS."""
FINALIZER = f"{GROUP}/cleanup"

PE_CONTAINER = "pe"
"""Of the pod of a PE, which may have sidecars."""

CONTROL_PORT = 10000
"""TCP port of every PE: metrics, health, status. The base of the PE design's ports, which count up
from it; here streams have topics, so that there is but one."""

PE_METADATA_KEY = "pe.json"
"""Key of a PE's ConfigMap that holds its graph metadata."""
PORT_LABELS_KEY = "port-labels.json"
"""Key of the job's ConfigMap that maps operator port labels to stream topics and PE ports."""
STAGES_KEY = "stages.json"
"""Key of the job's ConfigMap that holds the stages of its graph: what an edit is compared with."""
VERSION_KEY = "version.json.gz"
"""Key of a job's ConfigMap that holds the version that was accepted last."""
BUNDLE_KEY = "bundle.zip"
"""Default key of a ConfigMap that carries a bundle."""

EXPLANATION = "explanation"
"""What the metrics API serves of a region beside its metrics: every signal with its inputs."""
ADAPTER = "streamgraft-metrics-adapter"
"""Deployment and Service of the metrics adapter."""

SERVICE_ACCOUNT_PE = "streamgraft-pe"
"""The account that PE pods run under."""
SERVICE_ACCOUNT_TEST = "streamgraft-test"
"""The account that pods of test suites run under; who runs suites in a namespace makes it."""

AUTHORITY_SECRET = "streamgraft-ca"
"""Secret in the operator's namespace with the authority of the control ports' certificates."""
CONTROL_HOST = "streamgraft-pe"
"""Name that the certificates of all control ports have: for who connects to a pod's address."""

OBJECT_NAME = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
"""What names of Secrets and most other kinds of Kubernetes are like."""
MAX_OBJECT_NAME = 253
"""Longest one."""
MAX_JOB_NAME = 63
"""Longest job name: it is the value of a label."""
MAX_NAME = 40
"""Longest name of an application, operator or stream."""
MAX_PART_NAME = 20
"""Longest region name."""
OF_CUTS = "-(cut|rollback)-[0-9]+$"
"""What the names of Savepoints end in that consistent regions make, and no user's may."""

_LONGEST_STEM = 40
"""Leaves room for `-<pe>-<launch>` and `--<region>` within a DNS label (63)."""
_HASH_DIGITS = 10


def _stem(job: str) -> str:
    """Return what the names of all that belongs to a job begin with: its name, if it is short."""
    if len(job) <= _LONGEST_STEM and "--" not in job:
        return job
    # Digits only: what follows a stem after a double hyphen begins with a letter.
    number = int(hashlib.sha256(job.encode()).hexdigest(), 16) % 10**_HASH_DIGITS
    readable = re.sub("-+", "-", job)[: _LONGEST_STEM - _HASH_DIGITS - 2].rstrip("-")
    return f"{readable}--{number:0{_HASH_DIGITS}d}"


def pe_name(job: str, pe_id: int) -> str:
    """Return the name of a PE, of its ConfigMap and of its Service."""
    return f"{_stem(job)}-{pe_id}"


def pe_host(namespace: str, job: str, pe_id: int) -> str:
    """Return the DNS name of a PE: of its Service, whichever pod it has."""
    return f"{pe_name(job, pe_id)}.{namespace}.svc"


def pod_name(job: str, pe_id: int, launch_count: int) -> str:
    """Return the name of the pod of one launch of a PE: at most one pod per launch can exist."""
    return f"{_stem(job)}-{pe_id}-{launch_count}"


def warm_pod_name(job: str, token: str) -> str:
    """Return the name of a pod of a job's warm pool; `token` makes it one that never was before.

    It keeps the name when a PE takes it.
    """
    return f"{_stem(job)}-warm-{token}"


def is_warm_pod(job: str, pod: str) -> bool:
    """Return whether a pod of a job was made for its warm pool."""
    return pod.startswith(warm_pod_name(job, ""))


def suite_pod_name(suite: str, scenario: str) -> str:
    """Return the name of the pod of a test of a suite: no pod of a job has such a name.

    A scenario's name begins with a letter, what follows a double hyphen there with a digit.
    """
    return f"{suite}--{scenario}"


def junit_config_map(suite: str) -> str:
    """Return the name of the ConfigMap with the results of a test suite as JUnit XML."""
    return f"{suite}-junit"


def region_name(job: str, region: str) -> str:
    """Return the name of the ParallelRegion resource of a region of a job."""
    return _part(job, region)


def _part(job: str, name: str) -> str:
    """Return the name of a part of a job, which has one of its own within the application.

    One with a hyphen takes two: `b-r` of job `a` is not `r` of job `a-b`.
    """
    return f"{_stem(job)}{'--' if '-' in name else '-'}{name}"


def job_config_map(job: str) -> str:
    """Return the name of the job's own ConfigMap (operator port labels)."""
    return f"{_stem(job)}-job"


def bundle_config_map(job: str) -> str:
    """Return the name of the ConfigMap to which `streamgraft submit` uploads a bundle."""
    return f"{_stem(job)}-bundle"


def fetched_config_map(job: str) -> str:
    """Return the name of the ConfigMap into which the operator fetches a job's bundle."""
    return f"{_stem(job)}-fetched"


def accepted_config_map(job: str) -> str:
    """Return the name of the ConfigMap with the version of a job that was accepted last."""
    return f"{_stem(job)}-accepted"


def control_secret(job: str) -> str:
    """Return the name of the Secret with the certificate of the control ports of a job's PEs."""
    return f"{_stem(job)}-tls"


def control_hosts(namespace: str) -> list[str]:
    """Return the names in that certificate: one for all, and those of the PEs' Services."""
    return [CONTROL_HOST, f"*.{namespace}.svc", f"*.{namespace}.svc.cluster.local"]


def checkpoint_path(namespace: str, job: str, job_uid: str, stage: str, dropped: int) -> str:
    """Return where the checkpoints of a stage are, below the checkpoint root.

    `dropped`: how often an edit dropped the stage. One that comes back must not meet what it kept:
    its shards would go on from there where it had them, and begin anew where it had not. No stage's
    name has a dot.
    """
    return f"{namespace}/{job}-{job_uid}/{stage}{_life(dropped)}"


def _life(dropped: int) -> str:
    return f".{dropped + 1}" if dropped else ""


SAVEPOINT_FILE = "savepoint.json"
"""In the folder of a savepoint, which goes by its name: whose copies count there (`uid`)."""


def savepoint_path(namespace: str, savepoint: str) -> str:
    """Return where a savepoint is, below the checkpoint root: a folder per stage and shard.

    No job's checkpoints are there: their folders end in a uid.
    """
    return f"{namespace}/savepoints/{savepoint}"


def width_savepoint(region: str, moment: int) -> str:
    """Return the name of the savepoint of a width change.

    `region`: name of the ParallelRegion; `moment`: when the change began, in Unix seconds.
    """
    return f"{region}-{moment}"


def cut_savepoint(region: str, number: int) -> str:
    """Return the name of the savepoint of a cut; `region`: name of the ConsistentRegion."""
    return f"{region}-cut-{number}"


def cut_number(savepoint: str, region: str) -> int | None:
    """Return the number of the cut that has a savepoint of this name, None if none has.

    `region`: name of the ConsistentRegion.
    """
    return _number(savepoint, cut_savepoint(region, 0))


def region_of_cut(savepoint: str) -> str | None:
    """Return the name of the ConsistentRegion whose cuts have such names, None if no region's do.

    Whoever made the savepoint: others than a region may have given it that name.
    """
    region, _, number = savepoint.rpartition(cut_savepoint("", 0).removesuffix("0"))
    return region if region and number.isdecimal() else None


def rollback_savepoint(region: str, number: int) -> str:
    """Return the name of the savepoint of a rollback; `region`: name of the ConsistentRegion."""
    return f"{region}-rollback-{number}"


def rollback_number(savepoint: str, region: str) -> int | None:
    """Return the number of the rollback that has a savepoint of this name, None if none has."""
    return _number(savepoint, rollback_savepoint(region, 0))


def _number(savepoint: str, zeroth: str) -> int | None:
    number = savepoint.removeprefix(zeroth.removesuffix("0"))
    return int(number) if number != savepoint and number.isdecimal() else None


def topic(
    namespace: str, job: str, stream: str, region: str | None = None, dropped: int = 0
) -> str:
    """Return the Kafka topic of a stream between PEs.

    The input of a region is a topic of its own (`….<stream>.<region>`), because it is keyed and
    partitioned for that region. `dropped`: how often an edit dropped the region that the topic is
    partitioned for. One that comes back may have another key or another number of partitions.
    """
    parts = [namespace, job, stream] + ([region] if region else [])
    return ".".join(parts) + _life(dropped)


def of_region(region: str) -> str:
    """Return under what it is noted that a region was dropped. No stage has this name."""
    return f"region {region}"


def export_topic(namespace: str, job: str, job_uid: str, operator: str) -> str:
    """Return the Kafka topic of an export.

    It has the job's uid: positions of imports are not those of an earlier job of this name.
    """
    return f"{namespace}.{job}.{operator}.EXPORT-{job_uid[:8]}"


def import_topic(namespace: str, job: str, operator: str) -> str:
    """Return what names an import in the place of a topic. There is none of this name."""
    return f"{namespace}.{job}.{operator}{_IMPORT}"


def is_import(topic: str) -> bool:
    """Return whether this names an import in the place of a topic."""
    return topic.endswith(_IMPORT)


_IMPORT = ".IMPORT"


def shared_stream(job: str, operator: str) -> str:
    """Return the name of the Import or Export of an operator of a job."""
    return _part(job, operator)


def service(job: str, name: str) -> str:
    """Return the name of a Service that a job's application declares.

    Those of PEs end in a number, and this begins with a letter.
    """
    return _part(job, name)


def host_pool(job: str, name: str) -> str:
    """Return the name of a HostPool that a job's application declares."""
    return _part(job, name)


def rehearsal_topic(namespace: str, job: str) -> str:
    """Return the Kafka topic through which PEs send records of no meaning while they warm up.

    No stream has capital letters.
    """
    return f"{namespace}.{job}.REHEARSAL"


def dead_letter_topic(namespace: str, job: str) -> str:
    """Return the Kafka topic for records that a source of the job can't read."""
    return f"{namespace}.{job}.DEAD-LETTERS"


def consumer_group(namespace: str, job: str, consumer: str) -> str:
    """Return the consumer group under which progress is published; `consumer` is a stage name."""
    return f"{namespace}.{job}.{consumer}"


def transactional_id(namespace: str, job: str, stage: str, shard: int, sink: str = "") -> str:
    """Return the Kafka transactional id under which a shard writes, whichever PE runs it.

    `sink`: the sink's name, if it writes in a transaction of its own.
    """
    parts = [namespace, job, stage, str(shard)] + ([sink] if sink else [])
    return ".".join(parts)


def ledger_group(transactional_id: str) -> str:
    """Return the consumer group that notes which batches of a transactional id are written.

    No stage has capital letters.
    """
    return f"{transactional_id}.LEDGER"
