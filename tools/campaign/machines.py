"""Who runs tasks: processes of this machine, or the workers of a Dask cluster. Both are an executor of futures."""
from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from tinyhw.core.errors import DeviceError, Unsupported
from tinyhw.tools.campaign.apart import ApartPool
from tinyhw.tools.campaign.task import Done, Task

AHEAD: Final = 2  # tasks that a worker of a cluster has or will have: none waits for the next one's way
LOOK: Final = 2.0  # seconds between two looks at how many workers there are


class Here:
  """Processes of this machine."""

  def __init__(self, jobs: int) -> None:
    self.width = self.workers = jobs
    self._places, self._threads = ApartPool(), ThreadPoolExecutor(jobs)

  def submit(self, task: Task) -> Future[Done]:
    """Have a task run."""
    return self._threads.submit(self._places.run, task)

  def told(self) -> str: return f"{self.workers} processes"

  def close(self) -> None:
    """End all, whatever they are at."""
    self._places.stop()
    self._threads.shutdown(cancel_futures=True)


class Cluster:
  """The workers of a Dask scheduler; how many there are may change at any time."""

  def __init__(self, address: str) -> None:
    try:  # an extra: campaigns of one machine do without
      import distributed

      from tinyhw.tools.campaign.worker import PLUGIN, ApartPlugin, run_there
    except ModuleNotFoundError: raise Unsupported("a campaign on a cluster", "without Dask",
                                                  hint="pip install 'tinyhw[campaign]'") from None
    client: Any = distributed.Client  # without types
    try: self.client = client(address, timeout=20, set_as_default=False)
    except (OSError, ValueError) as error: raise DeviceError(
      f"no scheduler of Dask answers: {error}", where=address, hint="dask scheduler starts one") from None
    self.client.register_plugin(ApartPlugin(), name=PLUGIN)
    self._run, self._executor = run_there, self.client.get_executor(pure=False)
    self._looked, self.workers = 0.0, 0

  @property
  def width(self) -> int:
    """How many tasks it is given at once."""
    if time.monotonic() - self._looked > LOOK:
      self._looked, self.workers = time.monotonic(), sum(self.client.nthreads().values())
    return max(1, AHEAD * self.workers)

  def submit(self, task: Task) -> Future[Done]:
    """Have a task run. A worker that dies has its tasks run by others, some times (Dask's `allowed-failures`)."""
    future: Future[Done] = self._executor.submit(self._run, task)
    return future

  def told(self) -> str:
    """How many workers, and where they can be looked at."""
    _ = self.width
    return f"{self.workers} workers of {self.client.scheduler.address}, dashboard {self.client.dashboard_link}"

  def close(self) -> None:
    """Let the cluster be; what waits there is forgotten."""
    self._executor.shutdown(wait=False)
    self.client.close()


def machines(scheduler: str, jobs: int) -> Here | Cluster:
  """Who runs tasks: the cluster of a scheduler where there is one, else `jobs` processes."""
  return Cluster(scheduler) if scheduler else Here(jobs)
