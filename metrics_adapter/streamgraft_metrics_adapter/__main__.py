"""The composition root: `python -m streamgraft_metrics_adapter`."""

import asyncio
import gc
import logging
import resource
import ssl
import sys
from collections.abc import Coroutine
from typing import Any

import uvicorn

from streamgraft_common.kube import KubeClient, Store, account_config
from streamgraft_common.kube.config import ConfigError
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.access.authentication import Authenticator
from streamgraft_metrics_adapter.access.authorities import AuthoritiesWatch
from streamgraft_metrics_adapter.access.authorization import Authorizer
from streamgraft_metrics_adapter.access.connections import Connections
from streamgraft_metrics_adapter.access.tls import ServerContext, protocol
from streamgraft_metrics_adapter.api.app import application
from streamgraft_metrics_adapter.api.catalog import Catalog
from streamgraft_metrics_adapter.api.object_labels import ObjectLabels
from streamgraft_metrics_adapter.learning.load_history import LoadHistoryReader
from streamgraft_metrics_adapter.prometheus.refresher import Refresher
from streamgraft_metrics_adapter.prometheus.server import CredentialsError
from streamgraft_metrics_adapter.prometheus.source import PrometheusSource
from streamgraft_metrics_adapter.regions import RegionCache
from streamgraft_metrics_adapter.rules.configuration import ConfigurationError
from streamgraft_metrics_adapter.rules.configuration_file import ConfigurationFile
from streamgraft_metrics_adapter.rules.rule_metrics import RuleMetrics
from streamgraft_metrics_adapter.rules.rule_refresher import AT_ONCE, RuleRefresher
from streamgraft_metrics_adapter.settings import Settings, parse
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.supervision import kept_running

log = logging.getLogger(__name__)

_GARBAGE_THRESHOLDS = (10_000, 50, 10)
"""Every refresh of thousands of regions makes some hundred thousand objects, hardly any of them in
a cycle. With Python's own thresholds looking for cycles takes an eighth of a refresh, and stops
everything for 0.1 s at a time."""
_FILES_SECONDS = 10.0


async def serve(settings: Settings) -> None:
    """Serve until a signal ends it, or until something that must not end does."""
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    # Connections that never say a word hold files until their handshake times out.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    configuration = ConfigurationFile(settings.metrics_config)
    server_asked = settings.prometheus
    async with KubeClient(account_config(settings.kubeconfig)) as client:
        tls = ServerContext(settings.tls_cert, settings.tls_key)
        watch = AuthoritiesWatch(client, tls)
        regions = Store(client, PARALLEL_REGION.path())
        cache = RegionCache(regions)
        provider = Provider(
            cache,
            window_seconds=settings.window_seconds,
            max_age_seconds=settings.max_age_seconds,
            refresh_seconds=settings.refresh_seconds,
            learned_from=settings.own_targets,
        )
        rules, labels = RuleMetrics(configuration.rules), ObjectLabels(client)
        # Each has threads of its own: a rule that hangs takes none from the signals.
        asked_by_rules = PrometheusSource(server_asked, AT_ONCE)
        asked_for_days = PrometheusSource(server_asked, 1)
        catalog = Catalog(provider, rules, labels)
        authenticator = Authenticator(client, watch)
        app = application(provider, catalog, client.config, authenticator, Authorizer(client))
        http = protocol(Connections(), authenticator.is_front_proxy)
        server = uvicorn.Server(_configuration(settings, app, http, tls.context))
        await _until_first_ends(
            server.serve(),
            *(
                kept_running(run)
                for run in (
                    watch.store.run,
                    regions.run,
                    lambda: labels.run(rules.described),
                    Refresher(
                        PrometheusSource(server_asked), provider, settings.refresh_seconds
                    ).run,
                    RuleRefresher(asked_by_rules, rules, settings.refresh_seconds).run,
                    LoadHistoryReader(asked_for_days, cache, provider.forecasts).run,
                    lambda: _looking_at_files(tls, configuration, rules),
                )
            ),
        )


def _configuration(
    settings: Settings, app: Any, http: type[asyncio.Protocol], context: ssl.SSLContext
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.bind,
        port=settings.port,
        http=http,
        ws="none",
        lifespan="off",
        # Proxies are known by their certificate, not by their address.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        # Above the API server's own idle time, or it reuses a connection that is being closed.
        timeout_keep_alive=120,
        timeout_graceful_shutdown=5,
        ssl_context_factory=lambda config, default: context,
    )


async def _looking_at_files(
    tls: ServerContext, configuration: ConfigurationFile, rules: RuleMetrics
) -> None:
    while True:
        await asyncio.sleep(_FILES_SECONDS)
        try:
            tls.reload_certificate()
        except (OSError, ssl.SSLError) as error:
            # The two files are replaced one after the other; the next look finds both.
            log.warning("serving certificate not loaded: %s", error)
        if configuration.reload():
            rules.replace(configuration.rules)


async def _until_first_ends(*coroutines: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()


def main() -> None:
    """Run the adapter."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        asyncio.run(serve(parse()))
    except (ConfigError, ConfigurationError, CredentialsError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
