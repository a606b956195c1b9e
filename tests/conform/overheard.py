"""What a mock hears of its clients, by the vendors' names: packets, methods, calls, controls, classes."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tinyhw.autogen import kfd, nv_uvm
from tinyhw.mock.amd.chip import aql as aql_queue
from tinyhw.mock.amd.driver.kfd import Kfd
from tinyhw.mock.nv.chip.channel import Channel
from tinyhw.mock.nv.chip.engine import Engine
from tinyhw.mock.nv.chip.host import Host
from tinyhw.mock.nv.driver.controls import Controls
from tinyhw.mock.nv.driver.rm import Rm
from tinyhw.mock.nv.driver.uvm import Uvm
from tinyhw.wire import aql, methods, pm4, rm, sdma


@contextmanager
def overheard() -> Iterator[set[str]]:
  """Names that mocks of this process hear meanwhile."""
  names = set[str]()
  with pytest.MonkeyPatch.context() as patch:
    def packets(module: Any) -> None:
      decode = module.decode

      def wrapped(*arguments: Any, **more: Any) -> Any:
        found = decode(*arguments, **more)
        names.add(type(found[0] if isinstance(found, tuple) else found).__name__)
        return found
      patch.setattr(module, "decode", wrapped)
    for module in (pm4, sdma, aql): packets(module)
    vendor = aql_queue.AqlQueue._vendor

    def vendors(self: Any, raw: bytes) -> Any:
      found = vendor(self, raw)
      names.add(type(found).__name__)
      return found
    patch.setattr(aql_queue.AqlQueue, "_vendor", vendors)
    before: dict[Any, Any] = {Kfd: Kfd.ioctl, Engine: Engine.method, Host: Host.method, Controls: Controls.run,
                              Uvm: Uvm.ioctl, Rm: Rm._call, "make": Rm.make, "client": Rm._new_client,
                              "object": Channel._set_object}

    def call(self: Any, file: Any, request: int, *more: Any) -> Any:
      names.update(v.name.removeprefix("AMDKFD_IOC_") for n, v in kfd.IOCTLS.items() if n & 0xFF == request & 0xFF)
      return before[Kfd](self, file, request, *more)

    def method(self: Any, address: int, value: int) -> Any:
      row = methods.by_address(self.module).get(address)
      if row is not None: names.add(f"{self.module.NAME}.{row[0].__name__}")
      return before[Engine](self, address, value)

    def of_host(self: Any, address: int, value: int) -> Any:
      row = methods.by_address(methods.host).get(address)
      if row is not None: names.add(f"{methods.host.NAME}.{row[0].__name__}")
      return before[Host](self, address, value)

    def control(self: Any, served: Any, node: Any, p: Any) -> Any:
      names.add(rm.command_name(p.cmd))
      return before[Controls](self, served, node, p)

    def of_uvm(self: Any, file: Any, request: int, *more: Any) -> Any:
      if (row := nv_uvm.IOCTLS.get(request)) is not None: names.add(row.name)
      return before[Uvm](self, file, request, *more)

    def of_rm(self: Any, file: Any, name: str, *more: Any) -> Any:
      names.add(name)
      return before[Rm](self, file, name, *more)

    def make(self: Any, client: Any, parent: int, handle: int, class_id: int, *more: Any) -> Any:
      names.add(rm.class_name(class_id))
      return before["make"](self, client, parent, handle, class_id, *more)
    def object_(self: Any, subchannel: int, value: int) -> Any:
      names.add(f"{methods.host.NAME}.SET_OBJECT")
      return before["object"](self, subchannel, value)

    def client(self: Any, *arguments: Any) -> Any:
      names.add("NV01_ROOT_CLIENT")
      return before["client"](self, *arguments)
    for kind, name, wrapped in ((Kfd, "ioctl", call), (Engine, "method", method), (Host, "method", of_host),
                                (Controls, "run", control), (Uvm, "ioctl", of_uvm), (Rm, "_call", of_rm),
                                (Rm, "make", make), (Rm, "_new_client", client),
                                (Channel, "_set_object", object_)):
      patch.setattr(kind, name, wrapped)
    yield names
