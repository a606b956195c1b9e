"""Calls of functions in compiled code against the reference: in the kernel's own code, or made by the reference."""
from __future__ import annotations

import random
from typing import Any

import pytest

from tests.emulator.jit.ptx.test_jit import HEAD, both, kernel, numbers, run
from tests.strength import THOROUGH, seeds
from tinyhw.core.errors import Error, MachineFault

OPERATIONS = ["add.u32", "sub.u32", "mul.lo.u32", "xor.b32", "and.b32", "or.b32", "min.s32", "max.u32"]
REGISTERS = """.reg .pred %p<6>; .reg .b32 %r<12>; .reg .b64 %l<6>;"""


class Drawn:
  """A random function that takes and gives numbers: its parameters are registers, values or arrays on the stack."""

  def __init__(self, rng: random.Random, number: int, callees: list[Drawn]) -> None:
    self.rng, self.name = rng, f"f{number}"
    self.params = [rng.choice(["value", "array", "reg"]) for _ in range(rng.randrange(1, 4))]
    self.result = rng.choice(["value", "array", "reg"])
    self.body = self._body(callees)

  @staticmethod
  def declared(kind: str, name: str) -> str:
    """A parameter, or what is passed for one."""
    if kind == "array": return f".param .align 8 .b8 {name}[24]"
    return f".reg .b32 {name}" if kind == "reg" else f".param .b32 {name}"

  def prototype(self) -> str:
    params = ", ".join(self.declared(kind, f"{self.name}_x{k}") for k, kind in enumerate(self.params))
    return f".func ({self.declared(self.result, self.name + '_back')}) {self.name} ({params})"

  def call(self, rng: random.Random, guard: str, target: str = "") -> str:
    """A call with registers 0 to 5, whose result goes into one of them. `target` is a register that has its address."""
    out, given, after = [], [], ""
    for k, kind in enumerate(self.params):
      x = f"%r{rng.randrange(6)}"
      if kind == "reg":
        given.append(x)
        continue
      out.append(f"{self.declared(kind, f'x{k}')}; st.param.b32 [x{k}], {x};")
      if kind == "array": out.append(f"st.param.b32 [x{k}+20], %r{rng.randrange(6)};")
      given.append(f"x{k}")
    to = f"%r{rng.randrange(6)}"
    if self.result == "reg": back = to
    else:
      out.append(f"{self.declared(self.result, 'back')};")
      back, after = "back", f"{guard} ld.param.b32 {to}, [back{'+8' * (self.result == 'array')}];"
    what = f"{target}, ({', '.join(given)}), proto" if target else f"{self.name}, ({', '.join(given)})"
    return f"{{ {' '.join(out)} {guard} call{'.uni' * (not guard)} ({back}), {what}; {after} }}"

  def _body(self, callees: list[Drawn]) -> str:
    rng, name = self.rng, self.name
    lines = [f".local .align 8 .b8 {name}_kept[32];"]
    for k, kind in enumerate(self.params):
      at = "+20" * (kind == "array" and rng.random() < 0.5)
      lines.append(f"mov.b32 %r{k}, {name}_x{k};" if kind == "reg" else f"ld.param.b32 %r{k}, [{name}_x{k}{at}];")
    lines.append(f"mov.u64 %l1, {name}_kept; st.local.b32 [%l1+4], %r0; and.b32 %r6, %r0, 3;")
    lines += statements(rng, name, callees, rng.randrange(2, 6))
    if rng.random() < 0.5: lines.append(f"setp.gt.s32 %p2, %r1, %r2; @%p2 bra {name}_far;")
    lines += statements(rng, name + "_", callees, 2)
    out = {"value": f"st.param.b32 [{name}_back], %r1;", "array": f"st.param.b32 [{name}_back+8], %r1;",
           "reg": f"mov.b32 {name}_back, %r1;"}[self.result]
    if rng.random() < 0.4: lines.append(f"{out} setp.lt.s32 %p3, %r2, %r3; @%p3 ret;")
    lines.append(f"{name}_far: ld.local.b32 %r5, [%l1+4]; xor.b32 %r1, %r1, %r5; {out}")
    if rng.random() < 0.7: lines.append("ret;")
    return "\n".join(lines)

  def text(self) -> str: return f"{self.prototype()} {{ {REGISTERS}\n{self.body}\n}}\n"


def statements(rng: random.Random, name: str, callees: list[Drawn], count: int) -> list[str]:
  """Arithmetic on registers 0 to 5, loops, and calls of functions, some by a part of the threads."""
  out = []
  for k in range(count):
    what = rng.random()
    if what < 0.45 and callees:
      guard = ""
      if rng.random() < 0.5:
        guard = "@%p1" if rng.random() < 0.5 else "@!%p1"
        out.append(f"setp.lt.s32 %p1, %r{rng.randrange(6)}, %r{rng.randrange(6)};")
      out.append(rng.choice(callees).call(rng, guard))
    elif what < 0.6:
      label = f"{name}_loop{k}"
      out.append(f"mov.u32 %r7, 0; {label}: add.u32 %r7, %r7, 1; "
                 f"xor.b32 %r{rng.randrange(6)}, %r{rng.randrange(6)}, %r7; "
                 f"setp.le.u32 %p4, %r7, %r6; @%p4 bra {label};")
    else: out.append(f"{rng.choice(OPERATIONS)} %r{rng.randrange(6)}, %r{rng.randrange(6)}, %r{rng.randrange(6)};")
  return out


def module(rng: random.Random) -> str:
  """A kernel that calls some of several random functions, which call each other."""
  functions: list[Drawn] = []
  for number in range(rng.randrange(2, 4)): functions.append(Drawn(rng, number, functions[-2:]))
  texts = "".join(f.text() for f in functions)
  loads = " ".join(f"ld.global.b32 %r{k}, [%l1+{4 * k}];" for k in range(6))
  stores = " ".join(f"st.global.b32 [%l2+{4 * k}], %r{k};" for k in range(6))
  body = "\n".join(statements(rng, "k", functions, 4) + [functions[-1].call(rng, "")])
  begin = "mad.wide.u32 %l1, %t, 24, %in; mad.wide.u32 %l2, %t, 24, %out; and.b32 %r6, %t, 3;"
  return kernel(f"{begin} {loads} {body} {stores}", texts)


@pytest.mark.parametrize("start", seeds(range(3)))
def test_random_functions(start: int) -> None:
  rng = random.Random(start)
  _, stats = both(module(rng), numbers(rng, 80 * 6), block=80, grid=1)
  left = {*stats.helped, *stats.interpreted}
  assert left <= ({"call", "call.uni"} if THOROUGH else set())  # what is too long for the kernel stays a call


# ---- calls through registers

TABLE = """.func (.param .b32 back) f (.param .b32 x);
.func (.param .b32 back) g (.param .b32 x);
.global .align 8 .u64 table[3] = {f, g, h};
.func (.param .b32 back) f (.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; add.u32 %a, %a, 7;
  st.param.b32 [back], %a; ret; }
.func (.param .b32 back) g (.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; mul.lo.u32 %a, %a, 5;
  st.param.b32 [back], %a; ret; }
.func (.param .b32 back) h (.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; xor.b32 %a, %a, 0x55;
  { .param .b32 y; .param .b32 z; st.param.b32 [y], %a; call.uni (z), g, (y); ld.param.b32 %a, [z]; }
  st.param.b32 [back], %a; ret; }
.func other (.param .b64 x) { ret; }
"""
THROUGH = """mov.u64 %l4, other; mov.u64 %l1, table; CHOICE mad.wide.u32 %l1, %r1, 8, %l1; ld.global.u64 %l2, [%l1];
  setp.lt.u32 %p1, %t, 50; mov.u32 %r3, 1;
  { .param .b32 x; .param .b32 back; st.param.b32 [x], %t; proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    GUARD call (back), %l2, (x), proto; ld.param.b32 %r3, [back]; }
  mad.wide.u32 %l3, %t, 4, %out; st.global.u32 [%l3], %r3;"""


@pytest.mark.parametrize("choice", ["rem.u32 %r1, %t, 3;", "mov.u32 %r1, 2;", "shr.u32 %r1, %t, 5;"])
@pytest.mark.parametrize("guard", ["", "@%p1"])
def test_calls_through_registers(choice: str, guard: str) -> None:
  """Of functions that all threads call, or each its own."""
  text = kernel(THROUGH.replace("CHOICE", choice).replace("GUARD", guard), TABLE)
  _, stats = both(text, bytes(64), block=80)
  assert not stats.helped and not stats.interpreted


# ---- what is left to the reference

RECURSIVE = """.func (.param .b32 back) f (.param .b32 x);
.func (.param .b32 back) f (.param .b32 x) { .reg .pred %q; .reg .b32 %a<4>;
  ld.param.b32 %a1, [x]; mov.u32 %a2, 1; setp.eq.u32 %q, %a1, 0; @%q bra E;
  { .param .b32 y; .param .b32 z; sub.u32 %a3, %a1, 1; st.param.b32 [y], %a3; call.uni (z), f, (y);
    ld.param.b32 %a2, [z]; mad.lo.u32 %a2, %a2, %a1, 3; }
E: st.param.b32 [back], %a2; ret; }
.func (.param .b32 back) over (.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; and.b32 %a, %a, 7;
  { .param .b32 y; .param .b32 z; st.param.b32 [y], %a; call.uni (z), f, (y); ld.param.b32 %a, [z]; }
  st.param.b32 [back], %a; ret; }
"""
OVER = """mov.u32 %r4, 0; mov.u32 %r3, 0;
A: { .param .b32 x; .param .b32 back; add.u32 %r1, %t, %r4; st.param.b32 [x], %r1; call.uni (back), over, (x);
     ld.param.b32 %r2, [back]; } add.u32 %r3, %r3, %r2; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, TIMES; @%p1 bra A;
  mad.wide.u32 %l3, %t, 4, %out; st.global.u32 [%l3], %r3;"""


@pytest.mark.left("call")
@pytest.mark.parametrize("times", [2, 90])
def test_recursion(times: int) -> None:
  """A function that calls itself stays a call, in one that does not; called often, it leaves all to the reference."""
  found, stats = both(kernel(OVER.replace("TIMES", str(times)), RECURSIVE), bytes(64), block=80)

  def f(x: int) -> int: return f(x - 1) * x + 3 if x else 1
  wanted = [sum(f(t + k & 7) for k in range(times)) & 0xFFFFFFFF for t in range(80)]
  assert found[:320].view("u4").tolist() == wanted
  assert stats.helped.keys() == {"call.uni"}
  assert stats.interpreted.keys() == ({"call.uni"} if times > 2 else set())


DEEP = """.func deep (.param .b64 at) { .reg .b64 %z<2>; .reg .b32 %a; .local .b8 own[40]; ld.param.b64 %z1, [at];
  mov.u32 %a, 9; st.local.b32 [own+4], %a; INNER ret; }
.func outer (.param .b64 at) { .reg .b64 %z<2>; .reg .b32 %a; .local .align 8 .b8 own[24]; ld.param.b64 %z1, [at];
  mov.u32 %a, %tid.x; st.local.b32 [own+8], %a;
  { .param .b64 x; st.param.b64 [x], %z1; call.uni deep, (x); } ld.local.b32 %a, [own+8]; add.u32 %a, %a, 1;
  st.global.u32 [%z1+4], %a; ret; }
"""
CALL = "{ .param .b64 x; st.param.b64 [x], %l1; GUARD call outer, (x); }"


@pytest.mark.parametrize("inner", ["st.global.u32 [%z1+1], %a;", "st.global.u32 [%z1+1048576], %a;", "trap;",
                                   "ld.local.b32 %a, [%z1];", "L: bra L;",
                                   "vote.sync.any.pred %q, %q, 7; bar.sync 20;"])
@pytest.mark.parametrize("guard", ["", "@%p1"])
def test_faults_in_functions(inner: str, guard: str) -> None:
  """The fault is the reference's, which knows who has called."""
  text = kernel(f"mad.wide.u32 %l1, %t, 8, %out; setp.eq.u32 %p1, %t, 37; {CALL.replace('GUARD', guard)}",
                DEEP.replace("INNER", f".reg .pred %q; setp.eq.u32 %q, %a, 3; {inner}"))
  found = []
  for how in ("ref", "jit"):
    with pytest.raises(Error) as caught: run(text, "k", bytes(64), how, block=64, watchdog=200_000)
    error: Any = caught.value
    found.append((type(error), str(error), getattr(error, "pc", None), getattr(error, "lane", None)))
  assert found[0] == found[1]


@pytest.mark.left("bar.sync")
@pytest.mark.parametrize("sync", ["bar.sync 0;", "shfl.sync.idx.b32 %a, %a, 2, 31, -1; st.global.u32 [%z1], %a;"])
def test_threads_that_meet_in_functions(sync: str) -> None:
  """Some threads of each warp in a function and others in the kernel come to one barrier: the reference goes on with
  them, in the middle of two calls."""
  other = "bar.sync 0;" if "bar" in sync else "shfl.sync.idx.b32 %r1, %t, 2, 31, -1;"
  body = f"""mad.wide.u32 %l1, %t, 8, %out; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; mov.u32 %r2, %t;
    @!%p1 bra OTHER; {CALL.replace("GUARD", "")} bra END; OTHER: {other} END: add.u32 %r2, %r2, 5;
    st.global.u32 [%l1+512], %r2;"""
  if "shfl" in sync: body = body.replace("@!%p1 bra OTHER;", "")
  _, stats = both(kernel(body, DEEP.replace("INNER", sync)), bytes(64), block=64)
  assert bool(stats.interpreted) == ("bar" in sync)


def test_loops_in_functions_take_turns() -> None:
  """A function whose loop outlasts a turn, called by some of the threads."""
  loop = """.reg .pred %q; .reg .b32 %c; mov.u32 %c, 0; L: add.u32 %c, %c, 1; xor.b32 %a, %a, %c;
    setp.lt.u32 %q, %c, 30000; @%q bra L; st.global.u32 [%z1], %a;"""
  body = f"""mad.wide.u32 %l1, %t, 8, %out; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; {CALL.replace("GUARD", "@%p1")}
    st.global.u32 [%l1+512], %t;"""
  _, stats = both(kernel(body, DEEP.replace("INNER", loop)), bytes(64), block=64)
  assert not stats.interpreted


def test_results_in_registers_survive_ways_that_meet() -> None:
  """Threads that part in a function and meet at its end each give their own result."""
  text = f"""{HEAD}.func (.reg .b32 back) f (.reg .b32 x) {{ .reg .pred %q; setp.lt.s32 %q, x, 9; @%q bra A;
    mov.b32 back, 5; bra B; A: mov.b32 back, x; B: ret; }}
  .visible .entry k (.param .u64 in, .param .u64 out) {{ .reg .b32 %t, %r; .reg .b64 %o; ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x; call (%r), f, (%t); mad.wide.u32 %o, %t, 4, %o; st.global.u32 [%o], %r; ret; }}"""
  found, stats = both(text, bytes(64), block=32)
  assert found.view("u4")[:32].tolist() == [*range(9), *[5] * 23] and not stats.helped


def test_kernels_alike_with_other_functions_are_others() -> None:
  """What is compiled once is found again by all that it came from."""
  found = []
  for n in (3, 4):
    text = kernel("call (%r1), f, (%t); mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], %r1;",
                  f".func (.reg .b32 back) f (.reg .b32 x) {{ mad.lo.u32 back, x, {n}, 1; ret; }}\n")
    found.append(both(text, b"", block=32)[0][:128].view("u4").tolist())
  assert found == [[n * t + 1 for t in range(32)] for n in (3, 4)]


def test_a_stack_that_is_not_large_enough() -> None:
  """It is as large as it must be, where that can be known."""
  both(kernel("call.uni big, ();", ".func big () { .local .b8 much[70000]; ret; }\n"), bytes(64), block=32)
  text = kernel("call.uni big, ();", ".func big ();\n.func big () { .local .b8 much[70000]; call big, (); ret; }\n")
  for how in ("ref", "jit"):
    with pytest.raises(MachineFault) as caught: run(text, "k", bytes(64), how, block=32)
    assert "stack" in str(caught.value)


# ---- alloca

ROOM = """mov.u32 %r5, 0; stacksave.u64 %l9; and.b32 %r6, %t, 3; mov.u32 %r7, 0; mov.u32 %r3, 0; START
A: mul.lo.u32 %r1, %r6, 12; add.u32 %r1, %r1, 8; cvt.u64.u32 %l1, %r1; alloca.u64 %l2, %l1, ALIGN;
  st.local.u32 [%l2], %t; st.local.u32 [%l2+4], %r7; CALL
  ld.local.u32 %r2, [%l2+4]; mad.lo.u32 %r5, %r5, 3, %r2; cvt.u32.u64 %r2, %l2;
  add.u32 %r5, %r5, %r2; add.u32 %r7, %r7, 1; setp.le.u32 %p1, %r7, %r6; @%p1 bra A;
  stacksave.u64 %l3; cvt.u32.u64 %r2, %l3; add.u32 %r5, %r5, %r2; stackrestore.u64 %l9; stacksave.u64 %l3;
  cvt.u32.u64 %r2, %l3; add.u32 %r5, %r5, %r2; END mad.wide.u32 %l4, %t, 4, %out; st.global.u32 [%l4], %r5;"""
LOCAL = ".local .align 8 .b8 mine[24]; st.local.u32 [mine+4], %t;"
ON = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r7; call.uni (y), f, (x); ld.param.b32 %r3, [y]; }"


@pytest.mark.left("call")
@pytest.mark.parametrize("align", [8, 64])
@pytest.mark.parametrize("call", ["", ON])
@pytest.mark.parametrize("local", ["", LOCAL])
def test_room_on_the_stack(align: int, call: str, local: str) -> None:
  """Threads of a warp each with other sizes, as often as they want; a function that is called behind it all."""
  text = ROOM.replace("ALIGN", str(align)).replace("START", local).replace("CALL", call).replace("END", "")
  _, stats = both(kernel(text, RECURSIVE), bytes(64), block=80)
  assert stats.helped.keys() == ({"call.uni"} if call else set()) and not stats.interpreted


@pytest.mark.left("bar.sync")
def test_room_where_the_reference_goes_on() -> None:
  """It knows the end of each thread's stack; room that there is not is a fault."""
  end = """and.b32 %r8, %t, 1; setp.eq.u32 %p2, %r8, 1; @%p2 bra B; bar.sync 0; bra C; B: bar.sync 0;
    C: alloca.u64 %l2, 16, 8; cvt.u32.u64 %r2, %l2; add.u32 %r5, %r5, %r2;"""
  text = ROOM.replace("ALIGN", "8").replace("START", LOCAL).replace("CALL", "").replace("stackrestore.u64 %l9;", "")
  _, stats = both(kernel(text.replace("END", end)), bytes(64), block=64)
  assert stats.interpreted
  found = []
  for how in ("ref", "jit"):
    text = kernel("mul.wide.u32 %l1, %t, 4096; alloca.u64 %l2, %l1, 8; st.local.u32 [%l2], %t;")
    with pytest.raises(MachineFault) as caught: run(text, "k", bytes(64), how, block=64)
    found.append((str(caught.value), caught.value.lane))
  assert found[0] == found[1]
