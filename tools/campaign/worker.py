"""What a Dask worker has: the processes that its tasks run in."""
from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin, get_worker

from tinyhw.tools.campaign.apart import Places
from tinyhw.tools.campaign.machines import PLUGIN
from tinyhw.tools.campaign.task import Done, Task


class ApartPlugin(WorkerPlugin):
  """Begins and ends with a worker. It is sent to each that comes."""

  idempotent = True
  places: Places

  def setup(self, worker: Any) -> None:
    """On the worker, when it begins."""
    self.places = Places()

  def teardown(self, worker: Any) -> None:
    """On the worker, when it ends."""
    self.places.stop()


def run_there(task: Task) -> Done:
  """A task, on a worker."""
  done: Done = get_worker().plugins[PLUGIN].places.run(task)
  return done
