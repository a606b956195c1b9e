"""The oracle: what a UOp program or machine code means. Never imports the compiler, the drivers or the mock."""
if __name__ != "tinyhw.emulator":
  raise ImportError(f"{__name__!r} is a folder of tinyhw: import it as tinyhw.emulator")
