"""Files that processes share: whole or nothing, exactly what was written or nothing, in a folder of limited size."""
from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core import store as files
from tinyhw.core.store import FORMAT, Store, store_in

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
                    max_leaves=6)
HEADERS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store: return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
  store_in.cache_clear()
  yield
  store_in.cache_clear()


def path_of(store: Store, key: str) -> Path:
  assert store.folder is not None
  return store.folder / key


def sealed(rest: bytes) -> bytes:
  """A file whose digest is right."""
  return FORMAT + hashlib.sha256(rest).digest() + rest


@settings(max_examples=examples(50))
@given(HEADERS, st.binary(max_size=300), st.integers(0, 1 << 20), st.integers(1, 255))
def test_a_file_is_what_was_written_or_nothing(store: Store, header: dict[str, Any], code: bytes, at: int,
                                              flip: int) -> None:
  assert not store.holds("other") and store.load("other") is None
  store.save("key", header, code)
  assert store.holds("key") and store.load("key") == (header, code)
  path = path_of(store, "key")
  data = path.read_bytes()
  assert data == sealed(data[len(FORMAT) + 32:])
  at %= len(data)
  for damaged in (data[:at], data[:at] + bytes([data[at] ^ flip]) + data[at + 1:], data + bytes([flip])):
    path.write_bytes(damaged)
    assert store.load("key") is None


@pytest.mark.parametrize("rest", [b"", bytes(7), bytes(8), bytes(9), (2).to_bytes(8, "little") + b"[]code",
                                  (1).to_bytes(8, "little") + b"{}", (1 << 63).to_bytes(8, "little") + b"{} and code",
                                  (2).to_bytes(8, "little") + b"\xff\xff"])
def test_a_file_without_a_header_is_nothing(store: Store, rest: bytes) -> None:
  """Whatever its digest says."""
  path_of(store, "key").write_bytes(sealed(rest))
  assert store.load("key") is None
  path_of(store, "key").write_bytes(sealed((2).to_bytes(8, "little") + b"{}"))
  assert store.load("key") == ({}, b"")


def test_nothing_is_kept_without_a_folder(tmp_path: Path) -> None:
  for store in (Store(None), Store(tmp_path / "missing")):
    store.save("key", {}, b"code")
    assert not store.holds("key") and store.load("key") is None
  assert not (tmp_path / "missing").exists()


def test_a_file_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  store, most = Store(tmp_path), 1000
  monkeypatch.setattr(files, "LARGEST", most)
  room = most - len(sealed(bytes(8) + b"{}"))
  for size in (room - 1, room, room + 1):
    store.save(f"{size}", {}, bytes(size))
    assert store.load(f"{size}") == (({}, bytes(size)) if size <= room else None)
  assert sorted(p.stat().st_size for p in tmp_path.iterdir()) == [most - 1, most]


def test_a_folder_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """What was used last stays."""
  monkeypatch.setattr(files, "LIMIT", 10_000)
  monkeypatch.setattr(files, "SELDOM", 1)
  kept = Store(tmp_path)
  for n in range(20):
    kept.save(f"{n:02}", {}, bytes(1000))
    os.utime(tmp_path / f"{n:02}", (n, n))
    if n == 8: assert kept.load("00") == ({}, bytes(1000))  # a use
  assert 9_000 < sum(p.stat().st_size for p in tmp_path.iterdir()) <= 11_100
  assert kept.load("19") == ({}, bytes(1000)) == kept.load("00") and kept.load("01") is None


def test_few_saves_look_through_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Those whose digest begins with a zero byte: one of 256."""
  monkeypatch.setattr(files, "LIMIT", 0)
  kept, seen = Store(tmp_path), 0
  for n in range(600):
    before = len(list(tmp_path.iterdir()))
    kept.save(f"{n}", {"n": n}, b"")
    after = len(list(tmp_path.iterdir()))
    assert after in {0, before + 1}
    seen += after == 0
  assert 0 < seen < 10


def test_no_store_where_others_could_plant_code(tmp_path: Path) -> None:
  def unused() -> Path: raise AssertionError("a folder is named")
  for mode, private in ((0o700, True), (0o755, True), (0o777, False), (0o775, False), (0o757, False), (0o720, False)):
    folder = tmp_path / f"{mode:o}"
    (folder / "name").mkdir(parents=True)
    (folder / "name").chmod(mode)
    assert store_in(str(folder), "name", unused).folder == (folder / "name" if private else None), oct(mode)
  (tmp_path / "file").write_text("")
  assert store_in(str(tmp_path / "file"), "name", unused).folder is None
  assert store_in("0", "name", unused).folder is None


def test_the_usual_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
  usual = tmp_path / "a" / "b"
  old = os.umask(0)
  try: found = store_in(None, "name", lambda: usual)
  finally: os.umask(old)
  assert found.folder == usual / "name" and (usual / "name").stat().st_mode & 0o777 == 0o700
  assert store_in(str(tmp_path / "named"), "name", lambda: usual).folder == tmp_path / "named" / "name"


def test_processes_write_one_file(tmp_path: Path) -> None:
  """Writers of one key at the same time: whoever reads meanwhile finds a whole file."""
  kept, results = Store(tmp_path), []
  children = []
  for n in range(4):
    child = os.fork()
    if not child:
      for _ in range(50): kept.save("key", {"n": n}, bytes([n]) * 5000)
      os._exit(0)
    children.append(child)
  for _ in range(300): results.append(kept.load("key"))
  for child in children: os.waitpid(child, 0)
  for found in filter(None, results): assert found[1] == bytes([found[0]["n"]]) * 5000
  assert any(results) and [p.name for p in tmp_path.iterdir()] == ["key"]
