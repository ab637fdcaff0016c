"""All texts that users see as Kubernetes Events: one function each, so that they stay alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamgraft_common.content import Change


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event to be recorded on the object it is about."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def width_change_started(old: int, new: int) -> Event:
    """Report that a region begins to change its width."""
    return Event("Normal", "WidthChangeStarted", f"changing the width from {old} to {new}")


def width_change_retargeted(old: int, new: int) -> Event:
    """Report that the wanted width changed while channels were warming up."""
    return Event("Normal", "WidthChangeRetargeted", f"the wanted width is now {new}, not {old}")


def width_change_divided(wanted: int, warm: int) -> Event:
    """Report that shards move to the channels that are warm, before the others are."""
    message = f"{warm} of {wanted} channels are warm and get their shards now, the others later"
    return Event("Normal", "WidthChangeDivided", message)


def width_change_withdrawn(width: int) -> Event:
    """Report that the wanted width went back to the serving one before any shard moved."""
    return Event("Normal", "WidthChangeWithdrawn", f"staying at width {width}; no shard moved")


def shards_moving(count: int, epoch: int) -> Event:
    """Report that a new assignment was decided."""
    return Event("Normal", "ShardsMoving", f"moving {count} shards (assignment epoch {epoch})")


def width_serving(width: int, pause_seconds: float | None) -> Event:
    """Report that all moved shards run under their new owners."""
    pause = "unknown" if pause_seconds is None else f"{pause_seconds:.2f} s"
    return Event("Normal", "WidthServing", f"width {width} serves; longest pause {pause}")


def records_lost(message: str) -> Event:
    """Report that retention deleted records that a PE had not read."""
    return Event("Warning", "RecordsLost", message)


def query_per_shard(message: str) -> Event:
    """Report that a PE runs more queries than were planned, since Spark's plan is a strange one."""
    return Event("Warning", "QueryPerShard", message)


def asleep() -> Event:
    """Report that a region has no channels now."""
    return Event("Normal", "Asleep", "every shard has stopped after a batch; the region sleeps")


def width_change_finished(width: int) -> Event:
    """Report that a width change is over and surplus channels are gone."""
    return Event("Normal", "WidthChangeFinished", f"the region has {width} channels")


def width_change_rolled_back(old: int, new: int, why: str, again_in: float) -> Event:
    """Report that a width did not get healthy in time, and the old one serves."""
    return Event(
        "Warning",
        "WidthChangeRolledBack",
        f"back from width {new} to {old}: {why}; see the pods of these PEs. Width {new} is tried"
        f" again in {again_in:.0f} s if it is still wanted, any other one at once",
    )


def savepoint_completed(name: str, shards: int, size_bytes: int, unclean: int) -> Event:
    """Report that a savepoint can be restored from now on."""
    text = f"savepoint {name} has {shards} shards, {size_bytes:,} bytes"
    if unclean:
        text += f"; {unclean} of them in the midst of a batch, which runs again after a restore"
    return Event("Normal", "SavepointCompleted", text)


def savepoint_failed(name: str, why: str) -> Event:
    """Report that there is no savepoint, and that the job goes on."""
    return Event("Warning", "SavepointFailed", f"savepoint {name}: {why}; the job goes on")


def cut_failed(region: str, number: int, why: str) -> Event:
    """Report that a cut was given up, and that the region goes on."""
    text = f"cut {number} of consistent region {region}: {why}; the region goes on"
    return Event("Warning", "CutFailed", text)


def rolls_back(region: str, cut: str, why: str) -> Event:
    """Tell that a consistent region goes back to a cut by itself."""
    return Event("Warning", "RollingBack", f"consistent region {region} goes back to {cut}: {why}")


def no_more_rollbacks(region: str, count: int, why: str) -> Event:
    """Tell that a consistent region does not go back by itself any more."""
    text = (
        f"consistent region {region} went back {count} times without a cut between, and still:"
        f" {why}; mend that, and raise spec.rollbackRequested to go back once more"
    )
    return Event("Warning", "NoMoreRollbacks", text)


def rolled_back(region: str, cut: str) -> Event:
    """Tell that a consistent region goes on from a cut."""
    return Event("Normal", "RolledBack", f"consistent region {region} goes on from {cut}")


def rollback_failed(region: str, cut: str, why: str) -> Event:
    """Tell that a rollback was cut off, and that another one follows."""
    text = f"consistent region {region} could not go back to {cut}: {why}; it is tried again"
    return Event("Warning", "RollbackFailed", text)


def cut_damaged(region: str, why: str) -> Event:
    """Tell that a consistent region can't go back to a cut, and tries the one before."""
    text = f"consistent region {region}: {why}; it goes back to the cut before, if there is one"
    return Event("Warning", "CutDamaged", text)


def savepoint_left_over(path: str, message: str) -> Event:
    """Report which files of a deleted savepoint could not be removed."""
    return Event("Warning", "SavepointLeftOver", f"remove {path} yourself: {message}")


def job_rejected(reason: str, message: str) -> Event:
    """Report why a job can't be accepted as it is."""
    return Event("Warning", reason, message)


def edit_held(rollback: str) -> Event:
    """Tell that an edit waits for a consistent region that goes back to a cut."""
    text = f"rollback {rollback} is under way: this edit is carried out when it has ended"
    return Event("Normal", "RollbackUnderWay", text)


def generation_began(generation_id: int, changes: Mapping[Change, int]) -> Event:
    """Report that a generation of the job's graph is being submitted, and what its PEs take."""
    what = ", ".join(f"{changes[change]} {change}" for change in Change if changes.get(change))
    return Event("Normal", "Submitting", f"generation {generation_id} of the graph; PEs: {what}")


def submission_rolled_back(why: str) -> Event:
    """Report that a submission is given up and will be repeated from a clean slate."""
    return Event("Warning", "SubmissionRolledBack", f"{why}; all of it is deleted and made anew")


def kafka_unavailable(message: str) -> Event:
    """Report that topics can't be created at the moment."""
    return Event("Warning", "KafkaUnavailable", message)


def other_kafka(message: str) -> Event:
    """Report that a job's brokers are of another Kafka cluster than its positions."""
    return Event("Warning", "OtherKafkaCluster", message)


def topic_unusable(message: str) -> Event:
    """Report that an existing topic is in the way."""
    return Event("Warning", "TopicUnusable", message)


def sources_missing(topics: list[str]) -> Event:
    """Report which topics the job reads that nobody has created."""
    names = ", ".join(topics)
    return Event(
        "Warning",
        "SourceTopicMissing",
        f"waiting for the source topic {names}: create it, and the job goes on by itself,"
        " or let the job create it (submit --create-topics)",
    )


def references_missing(names: Iterable[object]) -> Event:
    """Report what the job's settings name that does not exist."""
    listed = ", ".join(map(str, names))
    return Event(
        "Warning",
        "ReferenceMissing",
        f"waiting for {listed}: create it, and the job goes on by itself",
    )


def pe_launched(launch: int, reason: str) -> Event:
    """Report that the launch count of a PE was raised."""
    return Event("Normal", "Launching", f"launch {launch}: {reason}")


def pe_failed(pod: str, launch: int, why: str, delay_seconds: float) -> Event:
    """Report that a pod ended by itself and when the next one starts."""
    return Event(
        "Warning",
        "PodFailed",
        f"pod {pod} ended ({why}); launch {launch} begins in {delay_seconds:.0f} s",
    )


_POLICIES = {
    "PodFailed": "restartFailedPod, or restartable of one of its operators,",
    "PodCompleted": "restartCompletedPod",
    "PodDeleted": "restartDeletedPod",
}


def pe_stopped(reason: str, why: str) -> Event:
    """Report that a PE is not launched again, and how to change that."""
    ended = f"{reason} ({why})" if why else reason
    return Event(
        "Warning",
        "NotRestarted",
        f"{ended}, and {_POLICIES[reason]} is false: set it to true, or delete this"
        " ProcessingElement, to launch it again",
    )


def pe_waiting(what: str) -> Event:
    """Report what the pod of a PE waits for before it is created."""
    return Event("Normal", "WaitingToLaunch", f"waiting for {what}")


def pool_lacks_memory(driver_bytes: int, budget: str) -> Event:
    """Report that not even one driver fits into the memory of a job's warm pool."""
    message = f"no driver waits: one takes {driver_bytes / 2**20:.0f}Mi, warmPoolMemory is {budget}"
    return Event("Warning", "WarmPoolLacksMemory", message)


def pe_adopts(pod: str) -> Event:
    """Report that a launch adopts a pod of the warm pool."""
    return Event("Normal", "AdoptsWarmPod", f"pod {pod} of the warm pool takes up this PE")


def stray(reason: str, why: str) -> Event:
    """Tell why nothing is done with a region or a PE."""
    return Event("Warning", reason, why)


def pod_lost(pod: str, node: str, seconds: float) -> Event:
    """Report that a pod is deleted by force, which did not end in time."""
    return Event(
        "Warning",
        "PodLost",
        f"pod {pod} is still there {seconds:g} s after its grace period (is node {node} lost?) and"
        " is deleted by force; its shards go on elsewhere, fenced against what may still run",
    )


def pod_refused(message: str) -> Event:
    """Report that the API server does not let a pod be created; it is tried again."""
    return Event("Warning", "PodRefused", message)


def suite_ended(passed: int, failed: int, aborted: int) -> Event:
    """Tell how the tests of a suite ended."""
    bad = failed or aborted
    return Event(
        "Warning" if bad else "Normal",
        "TestsFailed" if bad else "TestsPassed",
        f"{passed} passed, {failed} failed, {aborted} aborted",
    )


def test_began(name: str) -> Event:
    """Tell that the pod of a test is created."""
    return Event("Normal", "TestBegan", f"test {name} begins")


def junit_in_the_way(name: str) -> Event:
    """Tell why the results are not written as JUnit XML."""
    return Event(
        "Warning",
        "JUnitNotWritten",
        f"ConfigMap {name} belongs to something else: delete it, and the results go there",
    )


def topics_left_over(servers: str, what: str, message: str) -> Event:
    """Report what a deleted job leaves behind in Kafka."""
    return Event(
        "Warning",
        "TopicsLeftOver",
        f"the job is deleted without its topics on {servers}; delete {what} yourself ({message})",
    )


def topics_in_former_kafka(cluster_id: str, topics: Sequence[str]) -> Event:
    """Report what a job leaves behind in the Kafka that it no longer uses."""
    return Event(
        "Warning",
        "TopicsLeftOver",
        f"the job uses another Kafka now; its topics in the cluster {cluster_id} stay:"
        f" delete {', '.join(topics) or 'nothing'} yourself when nobody needs them",
    )


def checkpoints_left_over(path: str, message: str) -> Event:
    """Report which checkpoints of a deleted job could not be removed."""
    return Event("Warning", "CheckpointsLeftOver", f"remove {path} yourself: {message}")


def woken_for_autoscaler() -> Event:
    """Report why a region that slept has a channel again."""
    return Event(
        "Normal",
        "WokenForAutoscaler",
        "the HorizontalPodAutoscaler is new and would keep width 0 as set by you: the region gets a"
        " channel, and sleeps again if no records come",
    )


def autoscaler_created(name: str, low: int, high: int) -> Event:
    """Report that a HorizontalPodAutoscaler was generated from a region's `autoscaling`."""
    return Event(
        "Normal", "AutoscalerCreated", f"HorizontalPodAutoscaler {name}: width {low} to {high}"
    )


def scale_to_zero_refused(message: str) -> Event:
    """Report that the cluster's HorizontalPodAutoscalers can't scale to zero."""
    return Event(
        "Warning",
        "ScaleToZeroRefused",
        "the region keeps a channel, since this cluster takes no HorizontalPodAutoscaler with"
        " minReplicas 0: turn on the feature gate HPAScaleToZero of its API server and controller"
        f" manager, and then restart the operator ({message})",
    )


def autoscaler_corrected(name: str) -> Event:
    """Report that a generated HorizontalPodAutoscaler was set back to what the region asks for."""
    return Event(
        "Normal",
        "AutoscalerCorrected",
        f"HorizontalPodAutoscaler {name} is as the region's autoscaling says again",
    )


def autoscaler_removed(name: str) -> Event:
    """Report that a region asks for no autoscaling any more."""
    return Event("Normal", "AutoscalerRemoved", f"HorizontalPodAutoscaler {name} is deleted")


def autoscaler_yielded(name: str, other: str) -> Event:
    """Report that a user's HorizontalPodAutoscaler takes the place of the generated one."""
    return Event(
        "Warning",
        "AutoscalerYielded",
        f"HorizontalPodAutoscaler {name} is deleted, since {other} scales the region too: delete"
        f" that one, or take autoscaling out of the application",
    )


def name_taken(kind: str, name: str) -> Event:
    """Report that an object that the application declares can't be made."""
    return Event(
        "Warning",
        "NameTaken",
        f"{kind} {name}, which the application declares, is not made: there is one of that name"
        " that is not the job's; delete it, or choose another name in the application",
    )


def width_advised(width: int, wanted: int) -> Event:
    """Report what the autoscaler of a region that is only advised would do."""
    return Event(
        "Normal", "WidthAdvised", f"the load asks for width {wanted}; it is {width} (mode: advise)"
    )
