"""Everything of a pod that lies in its folder, and what its containers see of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from streamgraft_common.kube import ApiError, KubeClient, NotFound, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_local.node.checks import Command
from streamgraft_local.node.claims import claim_folder
from streamgraft_local.node.container import NotReady
from streamgraft_local.node.environment import command_line, environment
from streamgraft_local.node.expansion import rewrite
from streamgraft_local.node.files import publish
from streamgraft_local.node.process import MARKER, marker
from streamgraft_local.node.references import MissingReference, Sources, load, references
from streamgraft_local.node.scratch import scratch_folder
from streamgraft_local.node.settings import NodeSettings, base_variables
from streamgraft_local.node.tokens import API_TOKEN, Tokens, write_kubeconfig
from streamgraft_local.node.volumes import (
    VolumeError,
    files_of,
    has_files,
    host_folder,
    mounts_of,
    token_keys,
)

_CONFIG_ERROR = "CreateContainerConfigError"


def _make_missing(folders: Iterable[str]) -> None:
    """Create folders that subPath names: Kubernetes does so too."""
    for folder in folders:
        if not Path(folder).exists():
            Path(folder).mkdir(parents=True)


@dataclass(frozen=True)
class PodFiles:
    """Volumes, kubeconfig and command lines of one pod."""

    pod: Object
    """With its addresses in status."""
    folder: Path
    settings: NodeSettings
    client: KubeClient
    tokens: Tokens

    @property
    def _namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def _wants_token(self) -> bool:
        return self.pod["spec"].get("automountServiceAccountToken") is not False

    async def synchronize(self) -> None:
        """Write all volumes that come from the API, and the kubeconfig. Raises NotReady."""
        try:
            sources = await self._sources()
            keys = token_keys(self.pod) | ({API_TOKEN} if self._wants_token else set())
            tokens = {key: await self.tokens.get(key) for key in keys}
            for volume in self.pod["spec"].get("volumes", []):
                folder = self._own_folder(volume)
                if has_files(volume):
                    allocatable = self.settings.capacity
                    publish(folder, files_of(volume, self.pod, sources, tokens, allocatable))
                elif "emptyDir" in volume:
                    folder.mkdir(parents=True, exist_ok=True)
            if self._wants_token:
                config = self.client.config
                write_kubeconfig(self._kube, config, self._namespace, tokens[API_TOKEN])
        except (MissingReference, VolumeError, ApiError, Unreachable, OSError) as error:
            raise NotReady(_CONFIG_ERROR, str(error)) from error

    async def command(self, container: Object, folder: Path) -> Command:
        """Return what to start for a container. Raises NotReady."""
        try:
            sources = await self._sources()
            folders = await self._folders()
            given = self._given(folder)
            variables = environment(container, self.pod, sources, given, self.settings.capacity)
            mounts = mounts_of(container, folders, variables)
            words = command_line(container, variables)
        except (MissingReference, VolumeError, ApiError, Unreachable, ValueError) as error:
            raise NotReady(_CONFIG_ERROR, str(error)) from error
        _make_missing(mounts.values())
        own = {name: text for name, text in variables.items() if given.get(name) != text}
        rewritten = {name: rewrite(text, mounts) for name, text in own.items()}
        return Command(
            words=[rewrite(word, mounts) for word in words],
            variables=variables | rewritten,
            folder=self._working_folder(container, mounts, folder),
            mounts=mounts,
        )

    async def _sources(self) -> Sources:
        return await load(self.client, self._namespace, references(self.pod))

    async def _folders(self) -> dict[str, Path]:
        folders = {}
        for volume in self.pod["spec"].get("volumes", []):
            if "hostPath" in volume:
                folders[volume["name"]] = host_folder(volume)
            elif "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                folders[volume["name"]] = await self._claim(claim)
            else:
                folders[volume["name"]] = self._own_folder(volume)
        return folders

    async def _claim(self, name: str) -> Path:
        path = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims/{name}"
        try:
            return await claim_folder(self.client, await self.client.get(path))
        except NotFound as error:
            raise VolumeError(f'PersistentVolumeClaim "{name}" not found') from error

    @property
    def _kube(self) -> Path:
        return self.folder / "_kube"

    def _own_folder(self, volume: Object) -> Path:
        return self.folder / "_volumes" / str(volume["name"])

    def _given(self, folder: Path) -> dict[str, str]:
        server = urlsplit(self.client.config.server)
        variables = base_variables(self.settings) | {
            MARKER: marker(folder),
            "TMPDIR": str(scratch_folder(self.folder)),
            "HOSTNAME": self.pod["spec"].get("hostname") or self.pod["metadata"]["name"],
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(server.port or 443),
        }
        return variables | ({"KUBECONFIG": str(self._kube / "config")} if self._wants_token else {})

    @staticmethod
    def _working_folder(container: Object, mounts: dict[str, str], folder: Path) -> Path:
        if declared := container.get("workingDir"):
            real = Path(rewrite(declared, mounts))
            if not real.is_dir():
                raise NotReady("CreateContainerError", f"workingDir {declared} does not exist here")
            return real
        working = folder / "work"
        working.mkdir(parents=True, exist_ok=True)
        return working
