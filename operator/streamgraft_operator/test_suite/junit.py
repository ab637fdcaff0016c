"""The results of a test suite as JUnit XML, which every continuous integration reads. Pure."""

import re
from xml.etree import ElementTree

from streamgraft_common.resources import SuiteStatus

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't carry, escaped or not; logs have some."""


def junit(suite: str, status: SuiteStatus) -> str:
    """Return the document: failed tests as failures, aborted ones as errors."""
    tests = [*status.passed, *status.failed, *status.aborted]
    runs = {run.name: run for run in status.runs}
    seconds = {name: (runs[name].seconds or 0.0) if name in runs else 0.0 for name in tests}
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(tests)),
        failures=str(len(status.failed)),
        errors=str(len(status.aborted)),
        time=f"{sum(seconds.values()):.3f}",
    )
    for name in tests:
        case = ElementTree.SubElement(
            root, "testcase", classname=suite, name=name, time=f"{seconds[name]:.3f}"
        )
        if name not in status.passed:
            message = _NOT_XML.sub("\ufffd", runs[name].message if name in runs else "")
            tag = "failure" if name in status.failed else "error"
            ElementTree.SubElement(case, tag, message=message).text = message
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
