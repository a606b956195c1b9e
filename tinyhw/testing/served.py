"""pytest's plugin of `tinyhw explore`: tests are collected once, and run in a fork for each schedule."""
from __future__ import annotations

import os

import pytest

from tinyhw.testing.forks import Ran, serve


class Served:
  """See the module."""

  def __init__(self, requests: int, answers: int) -> None:
    self.requests, self.answers = requests, answers
    self.failed: list[pytest.TestReport] = []

  @pytest.hookimpl(tryfirst=True)
  def pytest_runtestloop(self, session: pytest.Session) -> bool:
    """In the place of pytest's own loop."""
    if session.testsfailed:
      raise session.Interrupted(f"{session.testsfailed} errors during collection")
    def body() -> None:
      session.config.option.maxfail = 1
      for item in session.items:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if self.failed: break
      if self.failed: raise Ran(1, self.failure())
    serve(self.requests, self.answers, body)
    return True

  def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
    if report.failed: self.failed.append(report)

  def failure(self) -> str:
    """The first test that failed: its name, line and error. All of it is printed."""
    report = self.failed[0]
    os.write(2, f"\n{report.nodeid} ({report.when})\n{report.longreprtext}\n".encode())
    for title, text in report.sections: os.write(2, f"--- {title}\n{text}\n".encode())
    crash = getattr(report.longrepr, "reprcrash", None)
    line = report.longreprtext.partition("\n")[0] if crash is None else f"line {crash.lineno}: {crash.message}"
    first = line.partition("\n")[0]
    return f"{report.nodeid}: {first}"
