"""The runner of scenarios: what runs in the pod of a test of a TestSuite.

`python -m streamgraft.scenarios`; the scenario is in $STREAMGRAFT_SCENARIO as JSON.
"""
