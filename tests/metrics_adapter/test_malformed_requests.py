"""Whatever is sent, the answer is a Status or what the OpenAPI documents promise, never a failure.

Requests are generated from the documents that are served, in one process, the same ones every time.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from streamgraft_metrics_adapter.api.openapi import GROUP_VERSIONS

DOCUMENTS = ("/api/v1/openapi.json", *(f"/openapi/v3/apis/{name}" for name in GROUP_VERSIONS))
EXAMPLES = 8


@pytest.mark.parametrize("document", DOCUMENTS)
def test_generated_requests(called: Any, document: str) -> None:
    schema = schemathesis.openapi.from_asgi(document, called.app)
    # Streams have no end, and /scale asks the API server.
    operations = schema.exclude(path_regex="/(stream|scale)$").as_strategy()

    @given(case=operations)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answers(case: Any) -> None:
        response = case.call()
        assert response.status_code < 500 or response.status_code == 503, response.text
        if response.status_code >= 400:
            assert response.json()["kind"] == "Status"
        else:
            case.validate_response(response)

    answers()
