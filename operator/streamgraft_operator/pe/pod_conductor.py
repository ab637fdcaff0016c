"""Drives the pod conductor: the only place where PEs get their pods."""

import time
from collections.abc import Iterable, Sequence

from streamgraft_common import names
from streamgraft_common.conditions import is_ready
from streamgraft_common.content import Content
from streamgraft_common.kube import ApiError
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import JobSpec
from streamgraft_operator import events, manifests
from streamgraft_operator.application.references import LOOK_AGAIN_SECONDS, Reference, references
from streamgraft_operator.context import Context, owner_of
from streamgraft_operator.graph import GraphError
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.conditions import POD_CREATED, State
from streamgraft_operator.kit.control_loop import Controller, Outcome, Watch, launch_changed
from streamgraft_operator.kit.coordinator import Patch
from streamgraft_operator.kit.objects import content_of, own_key, pe_key
from streamgraft_operator.kit.parsed import job_spec, pe_spec, pe_status
from streamgraft_operator.kit.taken import NameTaken
from streamgraft_operator.manifests import placement
from streamgraft_operator.pe import commands
from streamgraft_operator.pe.launches import not_before
from streamgraft_operator.pe.pods import pod_view, warm_pod_view
from streamgraft_operator.pe.step import PeLaunch, PodDecision, step
from streamgraft_operator.pe.volumes import check_volume

AT_ONCE_SECONDS = 0.05


class PodConductor(Controller):
    """A pod exists exactly when launch count, ConfigMap and bundle say so."""

    name = "pod-conductor"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caches = context.caches

    @property
    def watches(self) -> Sequence[Watch]:
        """PEs, their pods, their ConfigMaps and the bundles."""
        return (
            Watch(self._caches.processing_elements, own_key, launch_changed),
            Watch(self._caches.pods, pe_key),
            Watch(self._caches.config_maps, self._config_map_keys),
            Watch(self._caches.host_pools, self._users_of_pool),
        )

    async def reconcile(self, key: Key) -> Outcome:
        """Delete pods that should not exist, create the one that should."""
        item = self._caches.processing_elements.get(key)
        pods = {pod["metadata"]["name"]: pod for pod in self._caches.pods_by_pe.get(key)}
        if any(self._context.leaving_job_of(pod) for pod in pods.values()):
            return None  # all pods of a deleted job are deleted by one call
        job = await self._context.running_job_of(item) if item else None
        views = tuple(pod_view(pod) for pod in pods.values())
        now = time.time()
        decision = step(self._launch(item, job, now), views, now)
        for name in decision.delete:
            if not await self._keep(key, pods[name]):
                await self._context.write.pods.delete(pods[name])
        if item and decision.adopt:
            return None if await self._adopt(item, decision.adopt) else AT_ONCE_SECONDS
        if item and job:
            return await self._carry_out(item, job, decision)
        return decision.again_in

    async def _adopt(self, item: Object, name: str) -> bool:
        """Take a pod out of the pool for a PE; False if it was taken or ended meanwhile."""
        adoption = manifests.adoption(item)
        labels = adoption["labels"] | {names.LABEL_POOL: None}

        def command(pod: Object) -> Patch | None:
            metadata = pod["metadata"]
            if names.LABEL_POOL not in metadata["labels"] or "deletionTimestamp" in metadata:
                return None
            return {"metadata": {**adoption, "labels": labels}}

        namespace, pe = key_of(item)
        pod = await self._context.write.pods.update((namespace, name), command)
        if pod is None or pod["metadata"]["labels"].get(names.LABEL_PE) != pe:
            return False
        metrics.LAUNCHES.labels("warm").inc()
        self._context.recorder.record(item, events.pe_adopts(name))
        return True

    async def _keep(self, key: Key, pod: Object) -> bool:
        """Put the pod of a deleted PE back into the warm pool, if it is free and well."""
        item = self._context.freed.take(pod_view(pod).pe_uid)
        job = self._context.living_job_of(pod)
        if item is None or job is None or not is_ready(pod):
            return False
        metadata = manifests.return_to_pool(item, owner_of(job))

        def command(found: Object) -> Patch | None:
            has = found["metadata"]
            if has["labels"].get(names.LABEL_PE) != key[1] or "deletionTimestamp" in has:
                return None
            return {"metadata": metadata}

        kept = await self._context.write.pods.update(key_of(pod), command)
        return kept is not None and names.LABEL_POOL in kept["metadata"]["labels"]

    async def _carry_out(self, item: Object, job: Object, decision: PodDecision) -> Outcome:
        if decision.create:
            spec = self._context.settings.completed(job_spec(job))
            if missing := await self._missing(item, spec):
                waiting_for = ", ".join(map(str, missing))
                self._context.recorder.record(item, events.pe_waiting(waiting_for))
                return LOOK_AGAIN_SECONDS
            pool = self._pool(item)
            settings = self._context.settings
            try:
                check_volume(self._caches, job, manifests.checkpoint_volume(spec, settings))
                pod = manifests.pod(item, owner_of(job), spec, settings, pool)
                await self._create(key_of(item)[1], pod)
            except (GraphError, manifests.PodForbidden, NameTaken) as error:
                await self._tell_refusal(item, str(error))
                return LOOK_AGAIN_SECONDS
            except ApiError as error:
                await self._tell_refusal(item, error.message)
                raise
            metrics.LAUNCHES.labels("cold").inc()
        elif decision.waiting_for:
            self._context.recorder.record(item, events.pe_waiting(decision.waiting_for))
        return decision.again_in

    async def _create(self, pe: str, pod: Object) -> None:
        """Create the pod of a PE, unless it is there already. Raises NameTaken."""
        there = await self._context.write.pods.create(pod)
        if there["metadata"].get("labels", {}).get(names.LABEL_PE) != pe:
            raise NameTaken("Pod", there["metadata"]["name"])

    async def _tell_refusal(self, item: Object, message: str) -> None:
        """Keep why a PE has no pod, until it has one."""
        event = events.pod_refused(message)
        self._context.recorder.record(item, event)
        refused = State(POD_CREATED, "False", event.reason, event.message)
        write = self._context.write.processing_elements
        await commands.report(write, item, None, "Pending", event.message, (refused,))

    async def _missing(self, item: Object, spec: JobSpec) -> tuple[Reference, ...]:
        settings = pe_spec(item).effective()
        wanted = references(
            settings, spec.processing_element.checkpoint_repository, spec.transport_security
        )
        return await self._context.references.missing(key_of(item)[0], wanted)

    def _launch(self, item: Object | None, job: Object | None, now: float) -> PeLaunch | None:
        if item is None or job is None or "deletionTimestamp" in item["metadata"]:
            return None
        status = pe_status(item)
        namespace, name = key_of(item)
        content = Content.parse(content_of(item) or "")
        pool = content.pool(pe_spec(item).bundle_digest)
        spec = job_spec(job)
        settings = pe_spec(item).effective()
        warm = tuple(map(warm_pod_view, self._caches.pods_by_pool.get(key_of(job))))
        return PeLaunch(
            uid=item["metadata"]["uid"],
            launch_count=status.launch_count,
            content_id=content_of(item) or "",
            driver=pool if manifests.is_generic(item) else "",
            pool=warm,
            alike=self._nodes_alike(item, key_of(job)) if warm and not status.pod else (),
            config_content_id=content_of(self._caches.config_maps.get((namespace, name))),
            bundle_exists=self._context.bundles.exists(*key_of(job), spec.bundle),
            pool_lacks=self._pool_lacks(item),
            pod=status.pod,
            not_before=not_before(status, now),
            stopped=status.stopped is not None,
            keep_failed=settings.delete_failed_pod is False,
        )

    def _nodes_alike(self, item: Object, job: Key) -> tuple[str, ...]:
        """Return the node of each pod from which the scheduler would spread that of a PE."""
        alike = placement.alike(item["metadata"]["labels"]).items()
        pods = self._caches.pods_by_job.get(job)
        found = [pod for pod in pods if alike <= pod["metadata"]["labels"].items()]
        return tuple(pod["spec"]["nodeName"] for pod in found if pod_view(pod).alive)

    def _pool(self, item: Object) -> Object | None:
        """Return the HostPool that a PE is placed in, if it is there."""
        name = _pool_name(item)
        return self._caches.host_pools.get((item["metadata"]["namespace"], name)) if name else None

    def _pool_lacks(self, item: Object) -> str:
        name = _pool_name(item)
        return placement.lacking(name, self._pool(item), pe_spec(item).job) if name else ""

    def _users_of_pool(self, pool: Object) -> Iterable[Key]:
        namespace, name = key_of(pool)
        return [
            key_of(item)
            for item in self._caches.processing_elements.items()
            if item["metadata"]["namespace"] == namespace and _pool_name(item) == name
        ]

    def _config_map_keys(self, item: Object) -> Iterable[Key]:
        if keys := tuple(pe_key(item)):
            return keys
        users = self._context.bundles.users_of(key_of(item))
        owned = (self._caches.processing_elements_by_job.get(user) for user in users)
        return [key_of(pe) for pes in owned for pe in pes]


def _pool_name(item: Object) -> str | None:
    return pe_spec(item).placement.host_pool
