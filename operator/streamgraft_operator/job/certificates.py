"""The certificate of a job's control ports."""

from streamgraft_common.kube.client import Object
from streamgraft_operator.context import Context, owner_of
from streamgraft_operator.kit.parsed import job_spec


async def certify(context: Context, job: Object) -> None:
    """Keep the certificate that a job asks for, or the version of it that runs: as long as an edit
    is refused its pods need one, be it an edit to do without. Raises CertificateError."""
    for item in (job, await context.versions.running(job)):
        security = context.settings.security_of(job_spec(item))
        if security.encrypted:
            days = security.certificate_validity_days
            await context.issuer.ensure(owner_of(job), days)
            return
