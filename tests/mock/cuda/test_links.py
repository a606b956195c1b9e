"""The driver's linker: several PTX modules become one program."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, Client, u64
from tinyhw.autogen import cuda
from tinyhw.emulator.ptx.module.merge import linked

PTX, NVVM = cuda.CU_JIT_INPUT_PTX, cuda.CU_JIT_INPUT_NVVM
MAIN = HEAD + """
.extern .func (.reg .u32 r) twice(.reg .u32 x);
.extern .global .u32 shared_word;
.global .u32 own = 5;
.func (.reg .u32 r) helper(.reg .u32 x) { add.u32 r, x, 1; ret; }
.visible .entry run(.param .u64 out) {
  .reg .u64 %rd; .reg .u32 %r<4>;
  ld.param.u64 %rd, [out];
  mov.u32 %r1, 10;
  call (%r2), twice, (%r1);
  call (%r2), helper, (%r2);
  ld.global.u32 %r3, [own]; mad.lo.u32 %r2, %r3, 1000, %r2;
  ld.global.u32 %r3, [shared_word]; mad.lo.u32 %r2, %r3, 100000, %r2;
  st.global.u32 [%rd], %r2; ret; }
"""
OTHER = HEAD + """
.visible .global .u32 shared_word = 7;
.global .u32 own = 3;
.func (.reg .u32 r) helper(.reg .u32 x) { .reg .u32 %r; ld.global.u32 %r, [own]; mul.lo.u32 r, x, %r; ret; }
.visible .func (.reg .u32 r) twice(.reg .u32 x) { .reg .u32 %r; call (%r), helper, (x); mul.lo.u32 r, %r, 2; ret; }
"""  # what is not visible has the names of the other module's, and is another thing
WANT = 7 * 100000 + 5 * 1000 + 10 * 3 * 2 + 1


class Linker:
  def __init__(self, client: Client, room: int = 1000, log: bool = True) -> None:
    self.client, self.log = client, ctypes.create_string_buffer(1000)
    options = (ctypes.c_int * 2)(cuda.CU_JIT_ERROR_LOG_BUFFER, cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
    values = (ctypes.c_uint64 * 2)(ctypes.addressof(self.log) if log else 0, room)
    out = ctypes.c_uint64()
    client.call("cuLinkCreate_v2", 2, options, values, ctypes.byref(out))
    self.handle = u64(out.value)

  def add(self, text: str | bytes, kind: int = PTX, name: bytes = b"part") -> int:
    data = text.encode() if isinstance(text, str) else text
    size = ctypes.c_size_t(len(data))
    return self.client.code("cuLinkAddData_v2", self.handle, kind, data, size, name, 0, None, None)

  def complete(self) -> int:
    self.image, self.size = ctypes.c_void_p(), ctypes.c_size_t()
    return self.client.code("cuLinkComplete", self.handle, ctypes.byref(self.image), ctypes.byref(self.size))

  def module(self) -> int:
    data = ctypes.string_at(self.image.value or 0, self.size.value)
    assert self.client.code("cuLinkDestroy", self.handle) == 0
    return self.client.handle("cuModuleLoadData", data)


def result(c: Client, module: int) -> int:
  function, at = c.handle("cuModuleGetFunction", u64(module), b"run"), c.alloc(4)
  assert c.launch(function, 1, 1, [u64(at)]) == 0
  return int(c.get(at, np.zeros(1, np.uint32))[0])


@pytest.mark.parametrize("texts", [(MAIN, OTHER), (OTHER, MAIN)])
def test_modules_find_each_other_and_keep_what_is_their_own(texts: tuple[str, str]) -> None:
  c = Client()
  linker = Linker(c)
  assert [linker.add(text) for text in texts] == [0, 0] and linker.complete() == 0
  assert result(c, linker.module()) == WANT
  assert linker.client.code("cuLinkComplete", linker.handle, None, None) == cuda.CUDA_ERROR_INVALID_HANDLE


def test_a_file_and_what_was_linked_before(tmp_path: Path) -> None:
  c = Client()
  path = tmp_path / "other.ptx"
  path.write_text(OTHER)
  first = Linker(c)
  assert first.add(MAIN) == 0
  assert c.code("cuLinkAddFile_v2", first.handle, PTX, str(path).encode(), 0, None, None) == 0
  assert first.complete() == 0 and first.add(MAIN) == cuda.CUDA_ERROR_INVALID_VALUE
  second = Linker(c)
  assert second.add(ctypes.string_at(first.image.value or 0, first.size.value), cuda.CU_JIT_INPUT_CUBIN) == 0
  assert second.complete() == 0
  assert result(c, second.module()) == WANT
  none = str(tmp_path / "none").encode()
  assert c.code("cuLinkAddFile_v2", first.handle, PTX, none, 0, None, None) == cuda.CUDA_ERROR_FILE_NOT_FOUND


def test_a_weak_definition_gives_way() -> None:
  weak = OTHER.replace("shared_word = 7", "shared_word = 9").replace(".visible", ".weak")
  for texts in ((MAIN, weak, OTHER), (weak, OTHER, MAIN)):
    c = Client()
    linker = Linker(c)
    assert not any(linker.add(text) for text in texts) and linker.complete() == 0
    assert result(c, linker.module()) == WANT


@pytest.mark.parametrize(("texts", "said"), [
  ((MAIN,), "Undefined reference to 'twice' in 'part'"), ((OTHER, OTHER), "is defined in two modules")])
def test_what_does_not_fit_together_is_told(texts: tuple[str, ...], said: str) -> None:
  linker = Linker(Client())
  assert not any(linker.add(text) for text in texts)
  assert linker.complete() == cuda.CUDA_ERROR_INVALID_PTX
  assert said in linker.log.value.decode()


def test_inputs_that_are_no_ptx() -> None:
  linker = Linker(Client())
  assert linker.add("nonsense", name=b"mine") == cuda.CUDA_ERROR_INVALID_PTX and b"mine: " in linker.log.value
  assert linker.add(b"BC", NVVM) == cuda.CUDA_ERROR_NOT_SUPPORTED and b"NVVM IR to link" in linker.log.value
  assert linker.add(MAIN, 99) == cuda.CUDA_ERROR_INVALID_VALUE
  assert linker.complete() == cuda.CUDA_ERROR_INVALID_VALUE  # nothing to link


@pytest.mark.parametrize(("room", "log", "said"), [(8, True, b"error  "), (0, True, b""), (8, False, b"")])
def test_a_log_has_as_much_as_there_is_room(room: int, log: bool, said: bytes) -> None:
  linker = Linker(Client(), room, log)
  assert linker.add("nonsense") == cuda.CUDA_ERROR_INVALID_PTX and linker.log.value == said


@pytest.mark.parametrize("call", ["cuModuleLoadDataEx", "cuLinkCreate_v2"])
def test_logs_are_empty_where_nothing_is_said(call: str) -> None:
  """Programs print them whatever comes of the call; a log that has no room is left alone."""
  c = Client()
  texts = [ctypes.create_string_buffer(b"garbage") for _ in range(3)]
  info = cuda.CU_JIT_INFO_LOG_BUFFER, cuda.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
  error = cuda.CU_JIT_ERROR_LOG_BUFFER, cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
  for told, log, room in ((info, texts[0], 8), (error, texts[1], 8), (info, texts[2], 0)):
    values = (ctypes.c_uint64 * 2)(ctypes.addressof(log), room)
    given = 2, (ctypes.c_int * 2)(*told), values
    if call == "cuModuleLoadDataEx": c.handle(call, OTHER.encode() + b"\0", *given)
    else: c.call(call, *given, ctypes.byref(ctypes.c_uint64()))
  size = 1, (ctypes.c_int * 1)(info[1]), (ctypes.c_uint64 * 1)(8)
  if call == "cuModuleLoadDataEx": c.handle(call, OTHER.encode() + b"\0", *size)
  else: c.call(call, *size, ctypes.byref(ctypes.c_uint64()))
  assert [text.value for text in texts] == [b"", b"", b"garbage"]


def test_lines_of_each_file_stay_with_it() -> None:
  first = HEAD + '.file 1 "a.cu"\n.visible .func f() {\n.loc 1 5 3\nret;\n}\n'
  second = HEAD + '.file 1 "b.cu"\n.visible .func g() {\n.loc 1 9 1, function_name x, inlined_at 1 2 3\nret;\n}\n'
  whole = linked([("a", first), ("b", second)])
  assert '.file 2 "b.cu"' in whole and ".loc 2 9 1\n" in whole and ".loc 1 5 3\n" in whole


def test_a_result_that_there_is_none_of_is_not_taken() -> None:
  """As Numba declares a function that gives nothing; objects are linked without a look at it."""
  main = HEAD + """
.extern .func (.param .b32 r) note(.param .b64 at);
.visible .entry run(.param .u64 out) {
  .reg .b64 %rd; .reg .b32 %r; ld.param.u64 %rd, [out];
  { .param .b64 a; st.param.b64 [a], %rd; .param .b32 b; call.uni (b), note, (a); ld.param.b32 %r, [b]; }
  ret; }
"""
  other = HEAD + """
.visible .func note(.param .b64 at) {
  .reg .b64 %rd; ld.param.b64 %rd, [at]; st.u32 [%rd], 42; ret; }
"""
  client = Client()
  linker = Linker(client)
  assert linker.add(main) == linker.add(other) == linker.complete() == 0
  assert result(client, linker.module()) == 42
