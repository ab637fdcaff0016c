"""The results of a test suite as JUnit XML, which every continuous integration reads. Pure."""

import re
from xml.etree import ElementTree

from streamgraft_common.resources import SuiteStatus

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't carry, escaped or not; logs have some."""
_UNENDED = "it had not ended when this was written"


def junit(suite: str, status: SuiteStatus) -> str:
    """Return the document: failed tests as failures, aborted ones as errors.

    So are those that have not ended; of a suite that has no tests yet it is an error itself.
    """
    unended = [*status.running, *status.pending]
    errors = [*status.aborted, *unended]
    tests = [*status.passed, *status.failed, *errors]
    messages = {run.name: run.message for run in status.runs} | dict.fromkeys(unended, _UNENDED)
    if not tests:
        errors, tests, messages = [suite], [suite], {suite: "no test has begun"}
    seconds = dict.fromkeys(tests, 0.0) | {run.name: run.seconds or 0.0 for run in status.runs}
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(tests)),
        failures=str(len(status.failed)),
        errors=str(len(errors)),
        time=f"{sum(seconds[name] for name in tests):.3f}",
    )
    for name in tests:
        case = ElementTree.SubElement(
            root, "testcase", classname=suite, name=name, time=f"{seconds[name]:.3f}"
        )
        if name not in status.passed:
            message = _NOT_XML.sub("\ufffd", messages.get(name, ""))
            tag = "failure" if name in status.failed else "error"
            ElementTree.SubElement(case, tag, message=message).text = message
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
