"""A pod's volumes as folders: which files belong into them, and where they are.

Pure, but for the folders of emptyDir and hostPath. Tokens are fetched by the caller.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from streamgraft_common.kube.client import Object
from streamgraft_local.node.environment import data_of, field_value, resource_value
from streamgraft_local.node.expansion import expand
from streamgraft_local.node.files import File
from streamgraft_local.node.references import Kind, MissingReference, Sources

TokenKey = tuple[str, int]
"""(audience, "" for the API server's own; lifetime in seconds)."""

_FILE_KINDS = ("configMap", "secret", "downwardAPI", "projected")
SUPPORTED = (*_FILE_KINDS, "emptyDir", "hostPath", "persistentVolumeClaim")
DEFAULT_MODE = 0o644
TOKEN_SECONDS = 3600


class VolumeError(Exception):
    """A volume that can't be set up; the message says why."""


def has_files(volume: Object) -> bool:
    """Return whether the volume's content comes from the API."""
    return any(kind in volume for kind in _FILE_KINDS)


def token_keys(pod: Object) -> set[TokenKey]:
    """Return the service account tokens that the pod's volumes ask for."""
    return {
        _token_key(source["serviceAccountToken"])
        for volume in pod["spec"].get("volumes", [])
        for source in volume.get("projected", {}).get("sources", [])
        if "serviceAccountToken" in source
    }


def _token_key(source: Object) -> TokenKey:
    return source.get("audience", ""), int(source.get("expirationSeconds", TOKEN_SECONDS))


def files_of(
    volume: Object,
    pod: Object,
    sources: Sources,
    tokens: Mapping[TokenKey, str],
    allocatable: Mapping[str, str],
) -> dict[str, File]:
    """Return the files of a volume for which has_files() holds. Raises MissingReference."""
    projected = volume.get("projected")
    if projected is not None:
        mode = projected.get("defaultMode", DEFAULT_MODE)
        result: dict[str, File] = {}
        for source in projected.get("sources", []):
            if token := source.get("serviceAccountToken"):
                result[token["path"]] = File(tokens[_token_key(token)].encode(), 0o600)
            else:
                result.update(_source_files(source, pod, sources, allocatable, mode))
        return result
    mode = next(volume[kind] for kind in _FILE_KINDS if kind in volume).get("defaultMode")
    return _source_files(volume, pod, sources, allocatable, mode or DEFAULT_MODE)


def _source_files(
    source: Object, pod: Object, sources: Sources, allocatable: Mapping[str, str], mode: int
) -> dict[str, File]:
    if config_map := source.get("configMap"):
        return dict(_keys(sources, "configmaps", config_map["name"], config_map, mode))
    if secret := source.get("secret"):
        name = secret.get("secretName") or secret["name"]
        return dict(_keys(sources, "secrets", name, secret, mode))
    if downward := source.get("downwardAPI"):
        return dict(_downward(downward, pod, allocatable, mode))
    raise VolumeError(f"projected source {sorted(source)} is not supported by the process node")


def _keys(
    sources: Sources, kind: Kind, name: str, part: Object, mode: int
) -> Iterator[tuple[str, File]]:
    optional = bool(part.get("optional"))
    item = sources.find(kind, name, optional=optional)
    content = data_of(kind, item) if item else {}
    if not part.get("items"):
        yield from ((key, File(value, mode)) for key, value in content.items())
        return
    for entry in part["items"]:
        if entry["key"] in content:
            yield entry["path"], File(content[entry["key"]], entry.get("mode", mode))
        elif not optional:
            raise MissingReference(f'key "{entry["key"]}" not found in {kind} "{name}"')


def _downward(
    part: Object, pod: Object, allocatable: Mapping[str, str], mode: int
) -> Iterator[tuple[str, File]]:
    containers = {item["name"]: item for item in pod["spec"]["containers"]}
    for entry in part.get("items", []):
        if reference := entry.get("resourceFieldRef"):
            text = resource_value(containers[reference["containerName"]], reference, allocatable)
        else:
            text = field_value(pod, entry["fieldRef"]["fieldPath"])
        yield entry["path"], File(text.encode(), entry.get("mode", mode))


def host_folder(volume: Object) -> Path:
    """Return (and create, where the type says so) the folder of a hostPath volume."""
    part = volume["hostPath"]
    path, kind = Path(part["path"]), part.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    elif not path.exists():
        raise VolumeError(f"hostPath {path} does not exist")
    return path


def mounts_of(
    container: Object, folders: Mapping[str, Path], variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the real folder of every mount path of a container."""
    result = {}
    for mount in container.get("volumeMounts", []):
        below = mount.get("subPath") or expand(mount.get("subPathExpr", ""), variables)
        result[mount["mountPath"]] = str(folders[mount["name"]] / below)
    return result
