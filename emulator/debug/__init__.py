"""Looking into a dispatch: the kernel debugger, and the report of what a run did.

Reading order: `engine` runs a dispatch instruction by instruction, `code` names places, `wave` shows registers,
`expression` and `breaks` say when to stand, `snapshot` keeps and compares states, `debugger` puts them together.
"""
from tinyhw.emulator.debug.debugger import Debugger, Frame, Stop

__all__ = ["Debugger", "Frame", "Stop"]
