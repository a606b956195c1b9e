"""Machine code of x86-64 that stands between C and a Python function (`called`), and the text that it is made from.

Whatever a name of CPython's API stands for is in a word of the page behind the code, in the order in which the text has
the names first; what has other names is the code's own. PLACES are entries beside the first.
`tests/core/test_called.py` holds the code to its text.
"""
from __future__ import annotations

import re
from typing import Final

TEXT: Final = """
# what C calls, with the record in r11: arguments in registers are stored side by side, the return address and
# the arguments on the stack lie behind them
entry:
  push r9
  push r8
  push rcx
  push rdx
  push rsi
  push rdi
  push rbp
  push rbx
  push r12
  push r13
  push r14
  push r15
  sub rsp, 56
  mov r12, r11
  lea rbx, [rsp + 104]
  call [rip + Py_IsInitialized]
  test eax, eax
  jz ended
  call [rip + PyGILState_GetThisThreadState]
  mov r14, rax
  call [rip + PyGILState_Ensure]
  mov r13d, eax
  test r14, r14
  jnz known
  call [rip + PyGILState_Ensure]
  call [rip + PyGILState_GetThisThreadState]
  mov edi, [rip + key]
  mov rsi, rax
  call [rip + pthread_setspecific]
# an exception that is on its way is kept for the end
known:
  lea rdi, [rsp]
  lea rsi, [rsp + 8]
  lea rdx, [rsp + 16]
  call [rip + PyErr_Fetch]
  xor edi, edi
  xor esi, esi
  call [rip + PyByteArray_FromStringAndSize]
  mov r14, rax
  mov rdi, rbx
  call [rip + PyLong_FromVoidPtr]
  mov [rsp + 48], rax
  xor r15d, r15d
  mov ebp, 100
# enter(where the arguments lie, bytes for the answer)
again:
  mov rdi, [r12]
  mov rsi, [rsp + 48]
  mov rdx, r14
  xor ecx, ecx
  xor eax, eax
  call [rip + PyObject_CallFunctionObjArgs]
  test rax, rax
  jz raised
  mov rdi, rax
  call [rip + Py_DecRef]
look:
  mov rdi, r14
  call [rip + PyByteArray_Size]
  cmp rax, 8
  je answered
  dec ebp
  jnz again
  mov rbx, [r12 + 8]
  jmp tell
answered:
  mov rdi, r14
  call [rip + PyByteArray_AsString]
  mov rbx, [rax]
# told(exception) gives the number of a signal
tell:
  xor ebp, ebp
  test r15, r15
  jz leave
  mov dword ptr [rsp + 24], 100
more:
  mov rdi, [rip + told]
  mov rsi, r15
  xor edx, edx
  xor eax, eax
  call [rip + PyObject_CallFunctionObjArgs]
  test rax, rax
  jnz heard
  call [rip + PyErr_Clear]
  dec dword ptr [rsp + 24]
  jnz more
  jmp leave
heard:
  mov r12, rax
  mov rdi, rax
  call [rip + PyLong_AsUnsignedLongLongMask]
  mov ebp, eax
  mov rdi, r12
  call [rip + Py_DecRef]
# all is as it was
leave:
  mov rdi, r15
  call [rip + Py_DecRef]
  mov rdi, r14
  call [rip + Py_DecRef]
  mov rdi, [rsp + 48]
  call [rip + Py_DecRef]
  mov rdi, [rsp]
  mov rsi, [rsp + 8]
  mov rdx, [rsp + 16]
  call [rip + PyErr_Restore]
  mov edi, r13d
  call [rip + PyGILState_Release]
  test ebp, ebp
  jz out
  mov edi, ebp
  call [rip + PyErr_SetInterruptEx]
out:
  mov rax, rbx
  add rsp, 56
  pop r15
  pop r14
  pop r13
  pop r12
  pop rbx
  pop rbp
  add rsp, 48
  ret
# Python has ended; some functions still store the address of a text where their second argument says
ended:
  mov rbx, [r12 + 16]
  mov rax, [r12 + 24]
  test rax, rax
  jz out
  mov rsi, [rsp + 112]
  test rsi, rsi
  jz out
  mov [rsi], rax
  jmp out
# the first exception stays, another one goes
raised:
  lea rdi, [rsp + 24]
  lea rsi, [rsp + 32]
  lea rdx, [rsp + 40]
  call [rip + PyErr_Fetch]
  lea rdi, [rsp + 24]
  lea rsi, [rsp + 32]
  lea rdx, [rsp + 40]
  call [rip + PyErr_NormalizeException]
  mov rdi, [rsp + 24]
  call [rip + Py_DecRef]
  mov rdi, [rsp + 40]
  call [rip + Py_DecRef]
  mov rdi, [rsp + 32]
  test r15, r15
  jnz another
  mov r15, rdi
  jmp look
another:
  call [rip + Py_DecRef]
  jmp look
# a thread of C has ended: rdi is the state that Python had of it
thread_ends:
  push rbx
  mov rbx, rdi
  call [rip + Py_IsInitialized]
  test eax, eax
  jz gone
  mov rdi, rbx
  call [rip + PyEval_RestoreThread]
  mov rdi, rbx
  call [rip + PyThreadState_Clear]
  call [rip + PyThreadState_DeleteCurrent]
gone:
  pop rbx
  ret
# fork of C is as that of Python, which has set `forking`: no other thread has the interpreter amid it
before_fork:
  push rbx
  call [rip + Py_IsInitialized]
  test eax, eax
  jz not_ours
  cmp dword ptr [rip + forking], 0
  jne not_ours
  call [rip + PyGILState_Ensure]
  mov [rip + gil], eax
  call [rip + PyOS_BeforeFork]
  mov dword ptr [rip + ours], 1
not_ours:
  pop rbx
  ret
in_parent:
  push rbx
  cmp dword ptr [rip + ours], 0
  je not_ours
  mov dword ptr [rip + ours], 0
  call [rip + PyOS_AfterFork_Parent]
  jmp forked
in_child:
  push rbx
  cmp dword ptr [rip + ours], 0
  je not_ours
  mov dword ptr [rip + ours], 0
  call [rip + PyOS_AfterFork_Child]
forked:
  mov edi, [rip + gil]
  call [rip + PyGILState_Release]
  pop rbx
  ret
"""
CODE: Final = bytes.fromhex(
  "4151415051525657555341544155415641574883ec384d89dc488d5c2468ff15dc0f000085c00f8460010000ff15d60f00004989"
  "c6ff15d50f00004189c54d85f6751bff15c70f0000ff15b90f00008b3dc30f00004889c6ff15c20f0000488d3c24488d74240848"
  "8d542410ff15b60f000031ff31f6ff15b40f00004989c64889dfff15b00f000048894424304531ffbd64000000498b3c24488b74"
  "24304c89f231c931c0ff15950f00004885c00f84f60000004889c7ff158b0f00004c89f7ff158a0f00004883f808740bffcd75c5"
  "498b5c2408eb0c4c89f7ff15780f0000488b1831ed4d85ff7446c744241864000000488b3d670f00004c89fe31d231c0ff153a0f"
  "00004885c0750eff15570f0000ff4c241875dbeb174989c44889c7ff154b0f000089c54c89e7ff15180f00004c89ffff150f0f00"
  "004c89f7ff15060f0000488b7c2430ff15fb0e0000488b3c24488b742408488b542410ff15170f00004489efff15160f000085ed"
  "740889efff15120f00004889d84883c438415f415e415d415c5b5d4883c430c3498b5c2410498b4424184885c074db488b742470"
  "4885f674d1488906ebcc488d7c2418488d742420488d542428ff15690e0000488d7c2418488d742420488d542428ff15bc0e0000"
  "488b7c2418ff15690e0000488b7c2428ff155e0e0000488b7c24204d85ff75084989ffe9c1feffffff15460e0000e9b6feffff53"
  "4889fbff15ef0d000085c074184889dfff157a0e00004889dfff15790e0000ff157b0e00005bc353ff15ca0d000085c07425833d"
  "6f0e000000751cff15c70d00008905690e0000ff156b0e0000c705690e0000010000005bc353833d5f0e00000074f4c705530e00"
  "0000000000ff15550e0000eb1a53833d430e00000074d8c705370e000000000000ff15410e00008b3d1b0e0000ff15dd0d00005b"
  "c3")
WORDS: Final = tuple(dict.fromkeys(re.findall(r"(?a)\[rip \+ (\w+)\]", TEXT)))
PLACES: Final = {"thread_ends": 519, "before_fork": 559, "in_parent": 609, "in_child": 637}
