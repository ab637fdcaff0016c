"""The choices that dashboards share, and the selectors of what was chosen."""

from dashboards.model import Variable

_KNOWN = '__name__=~"streamgraft_pe_shards|streamgraft_pe_lag_records|streamgraft_job_phase"'
"""PEs have shards; of a region that sleeps the operator tells the lag, and the phase of a job of
which nothing runs."""
_JOB = 'namespace=~"$namespace", streams_job=~"$job"'

NAMESPACE = Variable("namespace", f"label_values({{{_KNOWN}}}, namespace)")
JOB = Variable("job", f'label_values({{{_KNOWN}, namespace=~"$namespace"}}, streams_job)')
REGION = Variable("region", f"label_values({{{_KNOWN}, {_JOB}}}, region)")
ELEMENT = Variable("pe", f"label_values({{{_KNOWN}, {_JOB}}}, pe)")

IN_JOB = _JOB
IN_REGION = f'{_JOB}, region=~"$region"'
IN_ELEMENT = f'{_JOB}, pe=~"$pe"'
OF_REGION = 'namespace=~"$namespace", name=~"($job)--?($region)"'
"""Signals name the region's object: job, one or two hyphens, region."""
