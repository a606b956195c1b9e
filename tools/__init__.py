"""Programs for developers: generators of autogen/ and their checks."""
if __name__ != "tinyhw.tools":
  raise ImportError(f"{__name__!r} is a folder of tinyhw: import it as tinyhw.tools")
