"""For Python processes that a test starts: the same change is planted there, or what they execute is noted.

This folder goes in front of PYTHONPATH, and the environment says which: see `trace.py` and `worker.py`.
"""
import os
import sys


def _plant(module: str, code_file: str) -> None:
  import marshal
  from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

  class Changed(SourceFileLoader):
    def get_code(self, fullname):  # type: ignore[no-untyped-def]
      with open(code_file, "rb") as f: return marshal.load(f)

  class Finder:
    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
      if name != module: return None
      spec = PathFinder.find_spec(name, path, target)
      assert isinstance(spec, ModuleSpec) and spec.origin
      spec.loader = Changed(name, spec.origin)
      return spec
  sys.meta_path.insert(0, Finder())


def _trace(where: str, files: str, test: str) -> None:
  import atexit

  import coverage
  cover = coverage.Coverage(data_file=os.path.join(where, "apart"), data_suffix=True, include=files.split("\n"),
                            config_file=False, context=test)
  cover.start()

  def end() -> None:
    cover.stop()
    cover.save()
  atexit.register(end)


if "TINYHW_MUTATE_CODE" in os.environ: _plant(*os.environ["TINYHW_MUTATE_CODE"].split("="))
elif "TINYHW_MUTATE_TRACE" in os.environ and os.environ.get("TINYHW_MUTATE_TEST"):
  _trace(os.environ["TINYHW_MUTATE_TRACE"], os.environ["TINYHW_MUTATE_FILES"], os.environ["TINYHW_MUTATE_TEST"])
