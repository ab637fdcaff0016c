"""Who issues tokens in a test: OAuth 2's grant for clients, and the keys that sign tokens."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from tests.serving import JsonHandler, serving

CLIENT, SECRET = "streamgraft", "client's secret"
_KEY = rsa.generate_private_key(65537, 2048)


@contextmanager
def token_server() -> Iterator[str]:
    """Serve `/token` and `/keys`; yields the URL."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


class _Handler(JsonHandler):
    def do_GET(self) -> None:
        self.answer(200, {"keys": [_public()]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        shown = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if self.headers["Authorization"] != f"Basic {shown}":
            self.answer(401, {"error": "invalid_client"})
            return
        token = {"access_token": _token(), "token_type": "Bearer", "expires_in": 300}
        self.answer(200, token)


def _public() -> dict[str, str]:
    """Return the key as a JSON Web Key (RFC 7517)."""
    numbers = _KEY.public_key().public_numbers()
    modulus = numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8)
    values = {"kty": "RSA", "kid": "key", "alg": "RS256", "use": "sig"}
    return {**values, "n": _encoded(modulus), "e": _encoded(numbers.e.to_bytes(3))}


def _token() -> str:
    """Return a JSON Web Token (RFC 7519)."""
    now = int(time.time())
    claims = {"sub": CLIENT, "aud": "kafka", "iat": now, "exp": now + 300, "scope": "kafka"}
    head = {"alg": "RS256", "kid": "key", "typ": "JWT"}
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
    signature = _KEY.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
