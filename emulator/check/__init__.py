"""Hazard checks: an observer of the reference interpreter that finds what a program gets away with here, not on a chip.

`Checker` watches one machine's dispatches and collects a `Report`; `EMU_CHECK=1` and `tinyhw launch --check` use it.
"""
from __future__ import annotations

from tinyhw.emulator.check.checker import Checker, checker
from tinyhw.emulator.check.report import KINDS, Finding, Report

__all__ = ["KINDS", "Checker", "Finding", "Report", "checker"]
