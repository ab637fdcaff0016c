"""All jobs at a glance: their health, what arrives, what waits, what goes wrong."""

from dashboards.identity import BY_JOB, legend, owned
from dashboards.model import RATE, Dashboard, Panel, Query, rate
from dashboards.variables import IN_JOB, JOB, NAMESPACE

_LEGEND = legend(BY_JOB)


def _total(metric: str) -> str:
    return f"sum by ({BY_JOB}) ({rate(metric, IN_JOB)})"


def _grown(metric: str) -> str:
    return f"sum by ({BY_JOB}) (increase({metric}{{{IN_JOB}}}[{RATE}]))"


def _pes(kind: str) -> str:
    return f'max by ({BY_JOB}) (streamgraft_job_pes{{kind="{kind}", {IN_JOB}}})'


_NOW = (
    Panel(
        "Jobs",
        "Jobs that exist, whether or not anything of them runs.",
        "short",
        (Query(f"count(count by ({BY_JOB}) (streamgraft_job_phase{{{IN_JOB}}}))", "jobs"),),
        number=True,
    ),
    Panel(
        "Processing elements",
        "Pods that report.",
        "short",
        (Query(f"count(streamgraft_pe_slots{{{IN_JOB}}})", "pods"),),
        number=True,
    ),
    Panel(
        "Waiting records",
        "Records in front of all processing elements.",
        "short",
        (Query(f"sum({owned('streamgraft_pe_lag_records', IN_JOB)})", "records"),),
        number=True,
    ),
    Panel(
        "Firing alerts",
        "Alerts of deploy/alerts; docs/operate/runbook.md says what to do about each.",
        "short",
        (
            Query(
                'count(ALERTS{alertname=~"Streamgraft.*", alertstate="firing"}) or vector(0)',
                "alerts",
            ),
        ),
        warn=1,
        alarm=3,
        number=True,
    ),
    Panel(
        "Health",
        "All jobs, with their phase and their processing elements; why a job is not Healthy is in"
        " the message of its status.",
        "short",
        (
            # Its value is 1: what it says is in its labels.
            Query(f"max by ({BY_JOB}, phase) (streamgraft_job_phase{{{IN_JOB}}}) == 1", ""),
            Query(_pes("ready"), "ready"),
            Query(_pes("wanted"), "wanted"),
        ),
        table=True,
        colored="phase",
        states={
            "Healthy": "green",
            "Pending": "orange",
            "Submitting": "orange",
            "Submitted": "orange",
            "Failed": "red",
        },
    ),
)

_FLOW = (
    Panel(
        "Rows read",
        "Rows that all processing elements of a job read.",
        "cps",
        (Query(_total("streamgraft_pe_input_rows_total"), _LEGEND),),
        leads_to="streamgraft-regions",
    ),
    Panel(
        "Rows written",
        "Rows that all processing elements of a job write.",
        "cps",
        (Query(_total("streamgraft_pe_output_rows_total"), _LEGEND),),
        leads_to="streamgraft-regions",
    ),
    Panel(
        "Lag",
        "Records that wait in front of a job's processing elements.",
        "short",
        (Query(f"sum by ({BY_JOB}) ({owned('streamgraft_pe_lag_records', IN_JOB)})", _LEGEND),),
        leads_to="streamgraft-regions",
    ),
    Panel(
        "Age of what is known",
        "How long ago positions were read from Kafka; it grows while Kafka does not answer.",
        "s",
        (Query(f"max by ({BY_JOB}) (streamgraft_pe_position_age_seconds{{{IN_JOB}}})", _LEGEND),),
        warn=30,
        alarm=60,
    ),
)

_TROUBLE = (
    Panel(
        "Lost records",
        "Records that retention deleted before they were read.",
        "short",
        (Query(_grown("streamgraft_pe_lost_records_total"), _LEGEND, quiet=True),),
        alarm=1,
    ),
    Panel(
        "Malformed records",
        "Records that a source could not read.",
        "short",
        (Query(_grown("streamgraft_pe_malformed_records_total"), _LEGEND, quiet=True),),
        warn=1,
    ),
    Panel(
        "Restarts after failures",
        "Queries that failed and were restarted.",
        "short",
        (Query(_grown("streamgraft_pe_query_restarts_total"), _LEGEND),),
        warn=1,
        alarm=5,
        leads_to="streamgraft-elements",
    ),
    Panel(
        "Pods that failed",
        "Pods of processing elements that failed, whatever took them down.",
        "short",
        (Query(_grown("streamgraft_operator_pe_failures_total"), _LEGEND),),
        warn=1,
        alarm=3,
        leads_to="streamgraft-elements",
    ),
    Panel(
        "Cuts that failed",
        "Of a consistent region, since the last one that is complete.",
        "short",
        (
            Query(
                f"max by ({BY_JOB}, consistent_region)"
                f" (streamgraft_consistent_region_failed_cuts{{{IN_JOB}}})",
                legend(f"{BY_JOB}, consistent_region"),
                quiet=True,
            ),
        ),
        warn=1,
        alarm=2,
    ),
    Panel(
        "Alerts",
        "What fires, by name; docs/operate/runbook.md says what to do about each.",
        "short",
        (
            Query(
                'sum by (alertname) (ALERTS{alertname=~"Streamgraft.*", alertstate="firing"})',
                "{{alertname}}",
                quiet=True,
            ),
        ),
        warn=1,
    ),
)

JOBS = Dashboard(
    "jobs",
    "Streamgraft: jobs",
    "All jobs: their health, what arrives, what waits, what goes wrong.",
    {"Now": _NOW, "Flow": _FLOW, "Trouble": _TROUBLE},
    (NAMESPACE, JOB),
)
