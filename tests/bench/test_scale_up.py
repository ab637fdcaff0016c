"""What the benchmark of jumping loads makes of its measurements."""

from bench.scale_up import Rise, figures, first_help
from streamgraft_common.kube.client import Object

PES: list[Object] = [
    {"spec": {"channel": None}, "status": {}},
    {
        "spec": {"channel": 0},
        "status": {"runtime": {"shards": {"0": {"firstBatchAt": "2026-01-01T00:00:00.000Z"}}}},
    },
    {
        "spec": {"channel": 1},
        "status": {
            "runtime": {
                "shards": {
                    "1": {"firstBatchAt": "2026-01-01T00:00:07.000Z"},
                    "2": {"firstBatchAt": "2026-01-01T00:00:05.000Z"},
                    "3": {},
                }
            }
        },
    },
]


def test_the_first_batch_of_a_new_channel_is_the_first_help() -> None:
    assert first_help(PES) % 60 == 5


def test_figures() -> None:
    rises = [
        Rise("warm", 3, decided=4.0, first_help=2.0, serving=3.0, decisions=1),
        Rise("warm", 3, decided=5.0, first_help=1.0, serving=9.0, decisions=2),
        Rise("warm", 3, decided=6.0, first_help=3.0, serving=4.0, decisions=1),
        Rise("auto_first", 1, decided=6.0, first_help=1.0, serving=12.0, decisions=1),
        Rise("auto", 3, decided=6.0, first_help=1.0, serving=4.0, decisions=1),
        Rise("auto", 2, decided=6.0, first_help=1.0, serving=4.0, decisions=1),
        Rise("cold", 0, decided=7.0, first_help=11.0, serving=19.0, decisions=1),
    ]
    found = figures(rises, {"warm": [5.0, 6.0], "cold": [8.0]}, lost=1, duplicated=2)
    assert found["decision_to_serving_s_p50.warm"] == 4.0
    assert found["decision_to_serving_s_max.warm"] == 9.0
    assert found["decision_to_serving_s_p50.cold"] == 19.0
    assert (found["first_help_s.warm"], found["first_help_s.cold"]) == (2.0, 11.0)
    assert (found["decisions.warm"], found["decisions.cold"]) == (4, 1)
    assert (found["driver_cpu_s.warm"], found["driver_cpu_s.cold"]) == (5.0, 8.0)
    assert found["driver_cpu_s"] == 6.0
    assert (found["rises"], found["lost"], found["duplicated"]) == (7, 1, 2)
    assert found["decision_to_serving_s_p50.auto_first"] == 12.0
    assert (found["pool_least.auto_first"], found["pool_least.auto"]) == (1, 2)
