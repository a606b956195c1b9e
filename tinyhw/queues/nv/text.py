"""Methods as text."""
from __future__ import annotations

import functools

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import Unsupported
from tinyhw.wire import methods


def sent_lines(sent: methods.Send, class_id: int) -> list[str]:
  """A line for each method of a header, with its fields; data that is sent to one method is counted."""
  lines = []
  writes = list(sent.writes())
  for method, value in writes[:1] if sent.header is methods.NONINCR and len(writes) > 1 else writes:
    lines.append(_line(class_id, method, value))
  if sent.header is methods.NONINCR and len(writes) > 1: lines[-1] += f" and {len(writes) - 1} words more"
  return lines


@functools.lru_cache(1 << 14)
def _line(class_id: int, method: int, value: int) -> str:
  if method < methods.HOST_END: return methods.method_text(host, method, value)
  try: return methods.method_text(methods.declared(class_id), method, value)
  except Unsupported: return f"method {method:#06x} of an unknown class = {value:#x}"
