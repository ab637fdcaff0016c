"""The days of all regions, and what they say of the day to come: in memory, without I/O."""

from collections.abc import Collection, Iterable

from streamgraft_autoscaler.forecast import BUCKET_SECONDS, Forecast, SeasonalForecaster
from streamgraft_metrics_adapter.regions import RegionKey


class Forecasts:
    """A forecaster for each region. All that they know was read from Prometheus, so replicas that
    have read the same say the same, whenever they were started."""

    def __init__(self) -> None:
        self._forecasters: dict[RegionKey, SeasonalForecaster] = {}

    def learn(self, key: RegionKey, values: Iterable[tuple[float, float]]) -> None:
        """Take in mean rates (records/s), oldest first, each with the Unix time at which its
        quarter of an hour ended."""
        forecaster = self._forecasters.setdefault(key, SeasonalForecaster())
        for ended_at, rate in values:
            forecaster.learn(round(ended_at / BUCKET_SECONDS) - 1, rate)

    def of(self, key: RegionKey, now: float) -> Forecast | None:
        """Return what to expect of a region from a Unix time on, as `SeasonalForecaster`."""
        forecaster = self._forecasters.get(key)
        return forecaster.forecast(now) if forecaster else None

    def keep(self, keys: Collection[RegionKey]) -> None:
        """Forget all regions but these."""
        self._forecasters = {key: found for key, found in self._forecasters.items() if key in keys}
