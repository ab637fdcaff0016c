"""What tells jobs, regions and processing elements apart, as labels, and the legends that say it.

Names repeat: of jobs in other namespaces, and of regions, which the application names, in other
jobs. So whatever adds up or takes the largest keeps these labels, as the adapter's queries do.
"""

BY_JOB = "namespace, streams_job"
BY_REGION = f"{BY_JOB}, region"
BY_ELEMENT = "namespace, pe"
"""The name of a processing element begins with its job's."""
BY_SIGNAL = "namespace, name"
"""Signals name the region's object, whose name begins with its job's."""


def legend(labels: str) -> str:
    """Return the legend that shows the labels' values."""
    return "/".join(f"{{{{{label}}}}}" for label in labels.split(", "))


def owned(metric: str, where: str) -> str:
    """Return a metric of partitions, whose series change with their owners: of a region's stage it
    is of whichever channel, else of its processing element."""
    return (
        f'(max by ({BY_REGION}, stage, topic, partition) ({metric}{{{where}, region!=""}})'
        f' or max by ({BY_JOB}, pe, topic, partition) ({metric}{{{where}, region=""}}))'
    )


def channels(condition: str) -> str:
    """Return the query that counts the channels of a region of which some processing element meets
    a condition: a channel has one for each stage."""
    return f"count by ({BY_REGION}) (count by ({BY_REGION}, channel) ({condition}))"
