"""What a Dask worker has: the processes that its tasks run in."""
from __future__ import annotations

from typing import Any, Final

from distributed import WorkerPlugin, get_worker

from tinyhw.tools.campaign.apart import ApartPool
from tinyhw.tools.campaign.task import Done, Task

PLUGIN: Final = "tinyhw-campaign"


class ApartPlugin(WorkerPlugin):
  """Begins and ends with a worker. It is sent to each that comes."""

  idempotent = True
  places: ApartPool

  def setup(self, worker: Any) -> None:
    """On the worker, when it begins."""
    self.places = ApartPool()

  def teardown(self, worker: Any) -> None:
    """On the worker, when it ends."""
    self.places.stop()


def run_there(task: Task) -> Done:
  """A task, on a worker."""
  plugin: Any = get_worker().plugins[PLUGIN]
  done: Done = plugin.places.run(task)
  return done
