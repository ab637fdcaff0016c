"""What every controller works with."""

from dataclasses import dataclass
from functools import partial

from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_operator.application.bundles import Bundles
from streamgraft_operator.application.expansion import Expander, job_of
from streamgraft_operator.application.references import References
from streamgraft_operator.application.sources import Networks
from streamgraft_operator.application.versions import Versions
from streamgraft_operator.certificates import Issuer
from streamgraft_operator.kafka.client import Brokers, Kafka
from streamgraft_operator.kafka.tls import KafkaTls
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.coordinators import Coordinators
from streamgraft_operator.kit.external_calls import ExternalCalls
from streamgraft_operator.kit.freed import Freed
from streamgraft_operator.kit.leadership import may_write
from streamgraft_operator.kit.parsed import job_spec, job_status
from streamgraft_operator.kit.recorder import Recorder
from streamgraft_operator.kit.volume import Volume
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.settings import Settings

REST_SECONDS_PER_PE = 0.00025
"""A look at one PE of a job costs some 50 us: looking at all of them takes a fifth of a core at
most, however fast they change."""


@dataclass(frozen=True)
class Context:
    """The parts of one operator, made once."""

    client: KubeClient
    settings: Settings
    caches: Caches
    write: Coordinators
    external_calls: ExternalCalls
    volume: Volume
    bundles: Bundles
    versions: Versions
    expander: Expander
    references: References
    kafka: Kafka
    kafka_tls: KafkaTls
    issuer: Issuer
    recorder: Recorder
    freed: Freed

    @classmethod
    def of(cls, client: KubeClient, settings: Settings) -> "Context":
        """Return the parts for a cluster."""
        caches = Caches(client, settings.namespaces)
        write = Coordinators(client, caches)
        external_calls = ExternalCalls()
        volume = Volume(settings.checkpoint_root, external_calls)
        networks = Networks(settings.bundle_networks)
        bundles = Bundles(client, caches, write, external_calls, volume, networks)
        versions = Versions(client, caches, write)
        return cls(
            client=client,
            settings=settings,
            caches=caches,
            write=write,
            external_calls=external_calls,
            volume=volume,
            bundles=bundles,
            versions=versions,
            expander=Expander(bundles, versions, settings),
            references=References(client),
            kafka=Kafka(partial(may_write, client)),
            kafka_tls=KafkaTls(client, settings),
            issuer=Issuer(client, settings.own_namespace),
            recorder=Recorder(client),
            freed=Freed(),
        )

    def living_job_of(self, item: Object) -> Object | None:
        """Return the job of an object unless it is gone or being deleted."""
        job = job_of(self.caches, item)
        return job if job and "deletionTimestamp" not in job["metadata"] else None

    async def running_job_of(self, item: Object) -> Object | None:
        """Return the living job of an object, with the spec that was accepted last."""
        job = self.living_job_of(item)
        return await self.versions.running(job) if job else None

    def leaving_job_of(self, item: Object) -> Object | None:
        """Return the job of an object if it is being deleted."""
        job = job_of(self.caches, item)
        return job if job and "deletionTimestamp" in job["metadata"] else None

    async def brokers_of(self, job: Object) -> Brokers:
        """Return how to reach the Kafka of a job."""
        return Brokers(self.servers_of(job), await self.kafka_tls.of(job))

    def servers_of(self, job: Object) -> str:
        """Return the addresses of the Kafka of a job."""
        return job_spec(job).bootstrap_servers or self.settings.bootstrap_servers

    def widths_of(self, job: Key) -> dict[str, int]:
        """Return the wanted widths of a job's regions, by their names in the application."""
        specs = (item["spec"] for item in self.caches.regions_by_job.get(job))
        return {spec["region"]: spec["width"] for spec in specs}

    def rest_seconds(self, job: Key) -> float:
        """Return how long to rest after a look at all PEs of a job."""
        return REST_SECONDS_PER_PE * self.caches.processing_elements_by_job.count(job)


def owner_of(job: Object) -> Owner:
    """Return the owner of what belongs to a job, at its present generation."""
    metadata = job["metadata"]
    return Owner(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation_id=job_status(job).generation_id,
    )
