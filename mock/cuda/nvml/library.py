"""libnvidia-ml.so.1 as a library of this process, beside libcuda."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Final

from tinyhw.autogen import nvml
from tinyhw.core.called import Called, reader
from tinyhw.mock.cuda.calls import uncollected
from tinyhw.mock.cuda.library.shared import Loaded
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.nvml.calls import Cards, Handler, answer

SONAME: Final = "libnvidia-ml.so.1"
NAMES: Final = sorted(nvml.FUNCTIONS)
UNKNOWN: Final = "Unknown Error"
_SAID: Final = {nvml.NVML_ERROR_UNKNOWN: UNKNOWN, nvml.NVML_ERROR_NO_PERMISSION: "Insufficient Permissions"}


def words(code: int) -> str:
  """What the library says of a result: the words of its name, but for a few that NVIDIA has otherwise."""
  if code not in nvml.RESULTS: return UNKNOWN
  name = nvml.RESULTS[code].removeprefix("NVML_").removeprefix("ERROR_")
  return _SAID.get(code) or name.replace("_", " ").title()


class Management:
  """The library. `behind` gives the process's machine, or None; `rows` are the functions that are served."""

  def __init__(self, behind: Callable[[], CudaMachine | None], rows: Mapping[str, Handler]) -> None:
    self.cards = Cards(behind)
    self.texts = {code: ctypes.create_string_buffer(words(code).encode()) for code in nvml.RESULTS}
    for kept in self.texts.values(): ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # also when Python has ended
    self.loaded = Loaded(SONAME, NAMES)
    for name, kinds in nvml.FUNCTIONS.items():
      if name == nvml.TEXT: continue
      over = nvml.NVML_SUCCESS if name == "nvmlShutdown" else nvml.NVML_ERROR_UNINITIALIZED  # when Python has ended
      read = kinds if name in rows or name in nvml.ON_DEVICE else ()
      self.loaded.fill(name, uncollected(answer(self.cards, name, rows.get(name)), read, nvml.NVML_ERROR_UNKNOWN, over))
    text, told = ctypes.addressof(self.texts[nvml.NVML_ERROR_UNKNOWN]), reader(nvml.FUNCTIONS[nvml.TEXT])
    self.loaded.fill(nvml.TEXT, Called(lambda block: self._text(*told(block)), text))

  def _text(self, code: int) -> int:
    return ctypes.addressof(self.texts.get(code, self.texts[nvml.NVML_ERROR_UNKNOWN]))
