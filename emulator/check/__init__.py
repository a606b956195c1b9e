"""Hazard checks: an observer of the reference interpreter that finds what a program gets away with here, not on a chip.

`checker.Checker` watches one machine's dispatches and collects a `report.Report`; `EMU_CHECK=1` and `tinyhw launch
--check` use it.

Checks, debugger and report know two vendors by their parts. What lies in `check` and `debug` itself
both share, and it imports neither. The folders `amdgcn` and `ptx` have waves and warps, registers,
calls, units and hazards; `vendor` alone chooses between them (`tests/test_layout.py`).
"""
