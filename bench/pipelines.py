"""The test application of the cloud native Streams paper (section 8.1), as a bundle.

A source feeds an n-way parallel region; each channel is a pipeline of n operators; all channels
end in one sink. Every operator is a PE of its own, so there are n x n + 3 PEs. It is never run:
its PEs are hollow.
"""

import io
import zipfile

from streamgraft_common.adl import Adl, Operator, Region, Stream
from streamgraft_common.bundle import ADL_FILE

REGION = "work"
_SCHEMA = {
    "type": "struct",
    "fields": [{"name": "key", "type": "string", "nullable": True, "metadata": {}}],
}


def pipelines(channels: int, depth: int, max_width: int) -> Adl:
    """Return the application: `channels` pipelines of `depth` operators each."""
    steps = [f"step-{number}" for number in range(depth)]
    chain = ["source", "split", *steps, "sink"]
    operators = [
        Operator(
            name=name,
            kind="source" if name == "source" else "sink" if name == "sink" else "function",
            inputs=[f"from-{before}"] if before else [],
            outputs=[] if name == "sink" else [f"from-{name}"],
            region=REGION if name in steps else None,
            function=name.replace("-", "_"),
        )
        for before, name in zip([None, *chain[:-1]], chain, strict=True)
    ]
    streams = [Stream(name=f"from-{name}", producer=name, schema=_SCHEMA) for name in chain[:-1]]
    return Adl(
        name="pipelines",
        built_by="bench",
        module="pipelines",
        application="app",
        operators=operators,
        streams=streams,
        regions=[Region(name=REGION, key=["key"], width=channels, max_width=max_width)],
    )


def bundle(adl: Adl) -> bytes:
    """Return a bundle that has the description and no code."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(ADL_FILE, adl.model_dump_json(by_alias=True))
    return buffer.getvalue()
