"""docker-compose.yml: what it mounts exists and fits together. Docker itself is not needed."""

import json
import os
import re
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.node.dockerfile import Dockerfile

from dashboards.generate import FOLDER
from streamgraft_local.foreground import datasource
from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.golang import Module, build

ROOT = Path(__file__).parents[2]
READER = Module("compose-go", ROOT / "tests/compose", "github.com/compose-spec/compose-go/v2/cmd")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def mounts(service: str) -> dict[str, str]:
    """Return what is mounted into a service: place in the container → place here."""
    found = {}
    for volume in COMPOSE["services"][service]["volumes"]:
        source, target = volume.removesuffix(":ro").rsplit(":", 1)
        found[target] = source
    return found


def test_services() -> None:
    """Each image of a fixed version; ours is built from the Dockerfile."""
    services = COMPOSE["services"]
    assert set(services) == {"streamgraft", "grafana"}
    for service in services.values():
        assert service["image"].rpartition(":")[2] not in ("", "latest")
    build = services["streamgraft"]["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert services["streamgraft"]["image"] == f"streamgraft:{version}"


def test_the_image_has_what_the_command_runs() -> None:
    """Its module, with the packages of the embedded environment."""
    python, flag, module, *arguments = COMPOSE["services"]["streamgraft"]["command"]
    assert (python, flag, module) == ("python", "-m", "streamgraft_local.foreground")
    assert find_spec(module)
    assert arguments[0] == "--datasource"
    extras = Dockerfile.parse((ROOT / "deploy/image/Dockerfile").read_text()).extras
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["local"] == [f"streamgraft[{','.join(extras)}]"]


def test_mounted_files_exist() -> None:
    """Docker would make an empty folder of a missing file; named volumes are declared."""
    for service in COMPOSE["services"]:
        for source in mounts(service).values():
            if source.startswith("./"):
                assert (ROOT / source).exists()
            elif not source.startswith("$"):
                assert source in COMPOSE["volumes"]


def test_the_images_user_may_write_to_its_volumes() -> None:
    """A named volume at a place that the image lacks would be root's."""
    image = (ROOT / "deploy/image/Dockerfile").read_text()
    (user,) = re.findall(r"^USER (\d+)$", image, re.MULTILINE)
    (made,) = re.findall(rf"install --directory --owner={user} (.+)$", image, re.MULTILINE)
    places = mounts("streamgraft")
    assert {place for place, source in places.items() if source in COMPOSE["volumes"]} == set(
        made.split()
    )


@pytest.mark.integration
def test_docker_compose_reads_it() -> None:
    """Docker Compose's own reader takes the file, by its schema."""
    reader = build(Cache(cache_folder(), silent), READER)
    command = [str(reader), "-format", "json", str(ROOT / "docker-compose.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["services"].keys() == COMPOSE["services"].keys()


def test_grafana_starts_behind_its_data_source(tmp_path: Path) -> None:
    """It reads the file when it starts only: the container is healthy once it is written, too."""
    (condition,) = COMPOSE["services"]["grafana"]["depends_on"].values()
    assert condition == {"condition": "service_healthy"}
    shell, line = COMPOSE["services"]["streamgraft"]["healthcheck"]["test"]
    assert shell == "CMD-SHELL"
    written = tmp_path / "datasource.yaml"
    assert COMPOSE["services"]["streamgraft"]["command"][-1] in line
    line = line.replace(COMPOSE["services"]["streamgraft"]["command"][-1], str(written))

    def healthy(status: str) -> bool:
        program = tmp_path / "streamgraft"
        program.write_text(f'#!/bin/sh\ntest "$1" = status && exit {status}\n')
        program.chmod(0o755)
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        return subprocess.run(["sh", "-c", line], env=path, check=False).returncode == 0

    assert not healthy("0")
    written.touch()
    assert not healthy("0")
    written.write_text("datasources: []")
    assert healthy("0")
    assert not healthy("1")


def test_grafana_is_provisioned() -> None:
    """It reads the data source that the environment writes, and the folder of our dashboards."""
    places = mounts("grafana")
    written = Path(COMPOSE["services"]["streamgraft"]["command"][-1])
    volume = mounts("streamgraft")[str(written.parent)]
    assert places["/etc/grafana/provisioning/datasources"] == volume
    source = datasource("http://127.0.0.1:9090")["datasources"][0]
    assert source["type"] == "prometheus"
    providers = yaml.safe_load((ROOT / "deploy/compose/grafana/dashboards.yaml").read_text())
    folder = providers["providers"][0]["options"]["path"]
    assert ROOT / places[folder] == FOLDER
    home = COMPOSE["services"]["grafana"]["environment"][
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"
    ]
    assert (FOLDER / Path(home).relative_to(folder)).is_file()
    assert COMPOSE["services"]["grafana"]["network_mode"] == "service:streamgraft"
