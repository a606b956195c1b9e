"""The report of `tinyhw bringup`: one zip file that can be sent, without names of persons, hosts and pieces."""
from __future__ import annotations

import json
import os
import platform
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from tinyhw.bringup.private import Private
from tinyhw.bringup.result import LadderRun
from tinyhw.core.errors import InvalidArgument

_ABOUT: Final = """What `tinyhw bringup {vendor}` found on {device}.

ladder.json   every rung: its state, its evidence, or what was found, what was wanted and the packets
ladder.html   the same as a page
run*.thq      what each process of the run asked of the kernel driver and submitted: tinyhw decode, tinyhw doctor

Left out by rule: names of hosts and users, paths, serial numbers, UUIDs, unique_id, PCI places. Nothing else of the
machine was read but the device's files, its topology and the kernel's log lines of its driver.
"""


class Parcel:
  """Records the run while it is open, where there is a file to write; `pack` writes it."""

  def __init__(self, path: Path | None) -> None:
    self._path = path
    self._folder: tempfile.TemporaryDirectory[str] | None = None
    self._before = {name: os.environ.get(name) for name in ("RECORD", "TINYHW_RECORD_RUN")}

  def __enter__(self) -> Self:
    if self._path is None: return self
    if not self._path.parent.is_dir() or self._path.is_dir():
      raise InvalidArgument("cannot be written", where=str(self._path), hint="name a file in a folder that is there")
    self._folder = tempfile.TemporaryDirectory(prefix="bringup")
    os.environ["RECORD"] = str(Path(self._folder.name) / "run.thq")
    os.environ["TINYHW_RECORD_RUN"] = os.urandom(8).hex()
    return self

  def __exit__(self, *error: object) -> None:
    if self._folder is None: return
    for name, value in self._before.items():
      if value is None: os.environ.pop(name, None)
      else: os.environ[name] = value
    self._folder.cleanup()

  def pack(self, run: LadderRun, page: str, secrets: Iterable[bytes]) -> None:
    """Write the zip, if one is wanted."""
    if self._path is None or self._folder is None: return
    private, folder = Private(secrets), Path(self._folder.name)
    row = run.row() | {"kernel": platform.release(), "machine": platform.machine(), "python": platform.python_version()}
    try:
      with zipfile.ZipFile(self._path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("README.txt", _ABOUT.format(vendor=run.vendor, device=run.device))
        out.writestr("ladder.json", json.dumps(private.value(row), indent=1))
        out.writestr("ladder.html", private.value(page))
        for i, path in enumerate(sorted(folder.glob("*.thq"), key=lambda p: p.stat().st_mtime_ns)):
          clean = folder / f"clean{i}"
          private.capture(path, clean)
          out.write(clean, f"run{i}.thq")
    except OSError as error:
      raise InvalidArgument(f"cannot be written: {error.strerror}", where=str(self._path)) from None
