"""tinygrad's emulator of AMD GPUs under the conformance suite's line protocol (docs/conform.md, "Another program").

    git clone https://github.com/tinygrad/tinygrad && git -C tinygrad checkout a9069c177a9d
    tinyhw conform --dut 'python examples/conform_tinygrad.py tinygrad' --arch gfx1100

It wants tinygrad's source tree, whose tests have the emulator, and clang, with which tinygrad compiles instructions.
Nothing of tinyhw is imported here: any program may answer so.
"""
import contextlib
import ctypes
import json
import mmap
import os
import sys
from importlib.metadata import PackageNotFoundError, version

os.environ.setdefault("DEV", "CPU")
EXEC_LO, VCC_LO, M0 = 126, 106, 125  # as the RDNA3 ISA manual numbers scalar registers
ARCHES = {"gfx1100": "rdna3", "gfx1201": "rdna4", "gfx942": "cdna"}
STEPS = 16  # instructions that a case may take


def place(address: int, size: int) -> int:
  """Memory of this process at an address, which is where the emulator looks for a GPU address."""
  libc = ctypes.CDLL(None, use_errno=True)
  libc.mmap.restype = ctypes.c_void_p
  libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
  fixed = 0x100000  # MAP_FIXED_NOREPLACE of Linux
  got = libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed, -1, 0)
  if got != address: raise OSError(ctypes.get_errno(), f"no memory at {address:#x}")
  return address


class Machine:
  """The emulator, with memory where cases want it."""

  def __init__(self, root: str) -> None:
    sys.path.insert(0, root)
    from test.mockgpu.amd import emu
    from tinygrad.device import Buffer, BufferSpec
    from tinygrad.dtype import dtypes
    self.emu, self.placed = emu, {}
    self.vmem = Buffer("CPU", 1 << 40, dtypes.uint32, options=BufferSpec(external_ptr=0)).ensure_allocated()
    self.lds = Buffer("CPU", 16384, dtypes.uint32).ensure_allocated()
    self.scratch = Buffer("CPU", 1 << 16, dtypes.uint8).ensure_allocated()
    self.root = root

  def memory(self, address: int, size: int) -> None:
    """Have memory there, with room around it."""
    first = (address & -0x10000) - 0x10000
    if first not in self.placed: self.placed[first] = place(first, -(-size // 0x10000) * 0x10000 + 0x20000)

  def run(self, asked: dict) -> dict:
    """The state after the instruction."""
    emu, arch, lanes = self.emu, ARCHES.get(asked["arch"]), asked["lanes"]
    if arch is None: return {"unsupported": f"{asked['arch']} is not emulated"}
    if lanes != (64 if arch == "cdna" else 32): return {"unsupported": f"waves of {lanes}"}
    code = bytes.fromhex(asked["code"]) + bytes.fromhex(asked["end"]) * 4
    self.memory(asked["pc"], 64)
    ctypes.memmove(asked["pc"], code, len(code))
    st = emu.WaveState(lanes, lanes)
    for k, row in enumerate(asked["v"]):
      for lane, word in enumerate(memoryview(bytes.fromhex(row)).cast("I")): st._write_vgpr(k, lane, word)
    for k, word in enumerate(asked["s"]): st._write_sgpr(k, word)
    m0 = 124 if arch == "cdna" else M0
    for register, value in ((VCC_LO, asked["vcc"]), (EXEC_LO, asked["exec"])):
      st._write_sgpr(register, value)
      st._write_sgpr(register + 1, value >> 32)
    st._write_sgpr(m0, asked["m0"])
    st._write_sgpr(emu.SCC.offset, asked["scc"])
    st.pc = asked["pc"]
    memory, lds, scratch = asked.get("memory"), bytes.fromhex(asked.get("lds", "")), asked.get("scratch")
    if memory is not None:
      data = bytes.fromhex(memory["bytes"])
      self.memory(memory["address"], len(data))
      ctypes.memmove(memory["address"], data, len(data))
    if lds: ctypes.memmove(self.lds._buf.va_addr, lds, len(lds))
    if scratch is not None: self.fill(scratch, lanes, st)
    buffers = [ctypes.c_uint64(x._buf.va_addr) for x in (st.sgpr_buf, st.vgpr_buf, self.vmem, self.lds, self.scratch,
                                                         st.accvgpr_buf)]
    with emu._MXCSRContext():
      for _ in range(STEPS):
        if st.pc == emu.ENDPGM_PC: break
        (program, runtime), _ = emu._decode_at(st.pc, arch)
        runtime.fxn(*[buffers[g] for g in program.arg.globals])
      else: return {"error": f"after {STEPS} instructions it has not ended"}
    def pair(n: int) -> int: return st._read_sgpr(n) | st._read_sgpr(n + 1) << 32
    out = {"v": [b"".join(st._read_vgpr(k, lane).to_bytes(4, "little") for lane in range(lanes)).hex()
                 for k in range(len(asked["v"]))],
           "s": [st._read_sgpr(k) for k in range(len(asked["s"]))], "scc": st._read_sgpr(emu.SCC.offset),
           "vcc": pair(VCC_LO), "m0": st._read_sgpr(m0), "mode": asked["mode"],
           "exec": pair(EXEC_LO)}
    if scratch is not None: self.empty(scratch, lanes)
    if memory is not None: out["memory"] = ctypes.string_at(memory["address"], len(data)).hex()
    if lds: out["lds"] = ctypes.string_at(self.lds._buf.va_addr, len(lds)).hex()
    return out

  def fill(self, scratch: dict, lanes: int, st: object) -> None:
    """Lanes' scratch, which the emulator has lane after lane, from memory, which has dword after dword."""
    st._write_sgpr(self.emu.SCRATCH_STRIDE_IDX, scratch["size"])
    for lane in range(lanes):
      for k in range(scratch["size"] // 4):
        ctypes.memmove(self.scratch._buf.va_addr + lane * scratch["size"] + 4 * k,
                       scratch["address"] + 4 * (k * lanes + lane), 4)

  def empty(self, scratch: dict, lanes: int) -> None:
    """And back."""
    for lane in range(lanes):
      for k in range(scratch["size"] // 4):
        ctypes.memmove(scratch["address"] + 4 * (k * lanes + lane),
                       self.scratch._buf.va_addr + lane * scratch["size"] + 4 * k, 4)

  def hello(self) -> dict:
    """Who it is."""
    try: number = version("tinygrad")
    except PackageNotFoundError: number = ""
    text = open(os.path.join(self.root, "pyproject.toml")).read()
    number = next((line.split('"')[1] for line in text.splitlines() if line.startswith("version")), number)
    return {"protocol": 1, "name": "tinygrad's emulator", "version": number}


def main() -> None:
  root = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "tinygrad"
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # what the emulator prints is no answer
  machine = Machine(root)
  for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "hello": answer = machine.hello()
    else:
      try: answer = machine.run(asked)
      except (RuntimeError, ValueError, KeyError, AssertionError, TypeError, IndexError, AttributeError) as error:
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        lacks = any(words in text for words in ("unimplemented", "Failed to compile", "unknown"))  # its own words
        answer = {"unsupported" if lacks else "error": text}
    with contextlib.suppress(BrokenPipeError): print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__": main()
