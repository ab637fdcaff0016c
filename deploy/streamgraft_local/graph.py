"""Run steps that need one another, each as soon as its needs are met, in parallel."""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """Something to run once all of its needs, names of other tasks, have ended well."""

    run: Callable[[], None]
    needs: tuple[str, ...] = ()


def run_all(tasks: Mapping[str, Task]) -> None:
    """Run all tasks; the first error stops further ones from starting and is raised at the end.

    Raises ValueError if tasks need one another in a circle.
    """
    waiting = dict(tasks)
    running: dict[Future[None], str] = {}
    error: BaseException | None = None
    with ThreadPoolExecutor(max_workers=max(1, len(tasks))) as pool:
        while True:
            if error is None:
                unfinished = {*waiting, *running.values()}
                for name in [n for n, t in waiting.items() if not unfinished.intersection(t.needs)]:
                    running[pool.submit(waiting.pop(name).run)] = name
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                del running[future]
                error = error or future.exception()
    if error:
        raise error
    if waiting:
        raise ValueError(f"steps need one another in a circle: {sorted(waiting)}")
