"""Files that processes share: whole or nothing, exactly what was written or nothing, in a folder of limited size."""
from __future__ import annotations

import hashlib
import os
import resource
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.strength import examples
from tinyhw.core import store as files
from tinyhw.core.store import FORMAT, MARK, MARK_NAME, SUFFIX, Entry, Store, store_in
from tinyhw.emulator.jit import store as jit_store
from tinyhw.engine import kept

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
                    max_leaves=6)
HEADERS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)


def unused() -> Path: raise AssertionError("a folder is named")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store: return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
  store_in.cache_clear()
  files._TOLD.clear()
  yield
  store_in.cache_clear()


def path_of(store: Store, key: str) -> Path:
  assert store.folder is not None
  return store.folder / f"{key}{SUFFIX}"


def entries(folder: Path) -> list[Path]: return sorted(folder.glob(f"*{SUFFIX}"))


def sealed(rest: bytes, key: str = "key") -> bytes:
  """A file whose digest is right."""
  return FORMAT + hashlib.sha256(key.encode() + b"\0" + rest).digest() + rest


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
  path_of(store, "another").write_bytes(data)
  assert store.load("another") is None  # it was saved under another key
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
  path_of(store, "0").write_bytes(sealed((2).to_bytes(8, "little") + b"{}" + bytes(most), "0"))
  assert store.load("0") is None


def test_a_folder_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """What was used last stays."""
  monkeypatch.setattr(files, "LIMIT", 10_000)
  monkeypatch.setattr(files, "SELDOM", 1)
  kept = store_in(str(tmp_path), "name", unused)
  for n in range(20):
    kept.save(f"{n:02}", {}, bytes(1000))
    os.utime(path_of(kept, f"{n:02}"), (n, n))
    if n == 8: assert kept.load("00") == ({}, bytes(1000))  # a use
  assert 9_000 < sum(p.stat().st_size for p in entries(tmp_path / "name")) <= 11_200
  assert kept.load("19") == ({}, bytes(1000)) == kept.load("00") and kept.load("01") is None


def test_few_saves_look_through_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Those whose digest begins with a zero byte: one of 256."""
  monkeypatch.setattr(files, "LIMIT", 0)
  kept, seen = store_in(str(tmp_path), "name", unused), 0
  for n in range(600):
    before = len(entries(tmp_path / "name"))
    kept.save(f"{n}", {"n": n}, b"")
    after = len(entries(tmp_path / "name"))
    assert after in {0, before + 1}
    seen += after == 0
  assert 0 < seen < 10


# ---- whose files they are

FOREIGN: dict[str, Callable[[Path], object]] = {
  "text": lambda path: path.write_text("mine"), "folder": lambda path: path.mkdir(),
  "link": lambda path: path.symlink_to("elsewhere"), "fifo": os.mkfifo}


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "key", f"k ey{SUFFIX}", f"{'a' * 64}", MARK_NAME])
def test_a_folder_that_it_did_not_make_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                    monkeypatch: pytest.MonkeyPatch, name: str, foreign: str) -> None:
  """TINYHW_CACHE=. in a folder that has an `emulator`."""
  monkeypatch.chdir(tmp_path)
  (tmp_path / "emulator").mkdir()
  FOREIGN[foreign](tmp_path / "emulator" / name)
  assert store_in(".", "emulator", unused).folder is None and os.listdir(tmp_path / "emulator") == [name]
  told = f"tinyhw: compiled code is not kept: {tmp_path}/emulator: tinyhw did not make this folder; TINYHW_CACHE="
  assert capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("name", ["notes.txt", ".hidden", "old", f"k ey{SUFFIX}", "0" * 64])
def test_only_its_own_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, foreign: str) -> None:
  """Whatever somebody puts into a folder of a store."""
  monkeypatch.setattr(files, "LIMIT", 0)
  monkeypatch.setattr(files, "SELDOM", 1)
  kept = store_in(str(tmp_path), "name", unused)
  FOREIGN[foreign](tmp_path / "name" / name)
  for n in range(3): kept.save(f"{n}", {}, bytes(100))
  assert sorted(os.listdir(tmp_path / "name")) == sorted([name, MARK_NAME])


@pytest.mark.parametrize("how", ["gone", "other", "link"])
def test_nothing_goes_where_the_mark_is_not_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
  kept, mark = store_in(str(tmp_path), "name", unused), tmp_path / "name" / MARK_NAME
  assert mark.read_bytes() == MARK
  mark.unlink()
  if how == "other": mark.write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
  if how == "link":
    (tmp_path / "mark").write_bytes(MARK)
    mark.symlink_to(tmp_path / "mark")
  monkeypatch.setattr(files, "LIMIT", 0)
  monkeypatch.setattr(files, "SELDOM", 1)
  kept.save("key", {}, b"")
  assert kept.load("key") == ({}, b"")


def test_a_folder_of_a_store_is_found_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
  """Also one whose maker ended before it had marked it, and one that its user has put something into."""
  (tmp_path / "name").mkdir()
  for _ in range(2):
    assert store_in(str(tmp_path), "name", unused).folder == tmp_path / "name"
    store_in.cache_clear()
    (tmp_path / "name" / "notes.txt").write_text("")
  (tmp_path / "name" / "notes.txt").unlink()
  (tmp_path / "name" / MARK_NAME).unlink()
  (tmp_path / "name" / f".half{SUFFIX}").write_text("")
  assert store_in(str(tmp_path), "name", unused).folder == tmp_path / "name"
  assert (tmp_path / "name" / MARK_NAME).read_bytes() == MARK and capsys.readouterr().err == ""


def test_no_store_where_others_could_plant_code(tmp_path: Path) -> None:
  for mode, private in ((0o700, True), (0o755, True), (0o777, False), (0o775, False), (0o757, False), (0o720, False)):
    folder = tmp_path / f"{mode:o}"
    (folder / "name").mkdir(parents=True)
    (folder / "name").chmod(mode)
    assert store_in(str(folder), "name", unused).folder == (folder / "name" if private else None), oct(mode)
  (tmp_path / "file").write_text("")
  (tmp_path / "link").mkdir()
  (tmp_path / "link" / "name").symlink_to(tmp_path / "700" / "name")
  for folder in (tmp_path / "file", tmp_path / "link"): assert store_in(str(folder), "name", unused).folder is None
  assert store_in("0", "name", unused).folder is None


def test_a_folder_that_changes_hands_is_used_no_more(tmp_path: Path) -> None:
  """Each use asks the folder that it opens, not the one that was there when the process began."""
  kept = store_in(str(tmp_path), "name", unused)
  kept.save("key", {}, b"code")
  (tmp_path / "name").chmod(0o777)
  assert kept.load("key") is None
  kept.save("new", {}, b"")
  assert len(entries(tmp_path / "name")) == 1
  (tmp_path / "name").chmod(0o700)
  assert kept.load("key") == ({}, b"code")
  (tmp_path / "name").rename(tmp_path / "other")
  (tmp_path / "name").symlink_to("other")
  assert kept.load("key") is None
  (tmp_path / "name").unlink()
  kept.save("key", {}, b"code")
  assert kept.load("key") is None and not (tmp_path / "name").exists()


def test_what_is_another_users_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  kept = store_in(str(tmp_path), "name", unused)
  kept.save("key", {}, b"code")
  own = os.geteuid()
  monkeypatch.setattr(os, "geteuid", lambda: own + 1)
  assert kept.load("key") is None and not kept.holds("key")
  store_in.cache_clear()
  assert store_in(str(tmp_path), "name", unused).folder is None


IN_ITS_PLACE: dict[str, Callable[[Path, Path], object]] = {
  "link": lambda path, saved: path.symlink_to(saved), "fifo": lambda path, _: os.mkfifo(path),
  "socket": lambda path, _: socket.socket(socket.AF_UNIX).bind(os.path.relpath(path)),
  "folder": lambda path, _: path.mkdir(), "dangling": lambda path, _: path.symlink_to("nowhere"),
  "loop": lambda path, _: path.symlink_to(path.name),
  "writable": lambda path, saved: (path.write_bytes(saved.read_bytes()), path.chmod(0o666)),
  "of a group": lambda path, saved: (path.write_bytes(saved.read_bytes()), path.chmod(0o620)),
  "empty": lambda path, _: path.write_bytes(b"")}


@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_what_is_no_file_of_its_own_is_not_there_and_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                what: str) -> None:
  """A FIFO holds nobody up. What a link leads to is neither read nor written."""
  kept, saved = store_in(str(tmp_path), "name", unused), tmp_path / "saved"
  monkeypatch.chdir(tmp_path / "name")  # a socket's path is short
  kept.save("key", {"n": 1}, b"code")
  path_of(kept, "key").rename(saved)
  before = saved.read_bytes()
  IN_ITS_PLACE[what](path_of(kept, "key"), saved)
  assert kept.load("key") is None
  kept.save("key", {"n": 2}, b"new")
  assert kept.load("key") == (None if what == "folder" else ({"n": 2}, b"new")) and saved.read_bytes() == before
  assert len(os.listdir(tmp_path / "name")) == 2  # and the mark; nothing half written


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o777])
def test_folders_and_files_are_made_for_the_user_alone(tmp_path: Path, mask: int) -> None:
  """Those above the store's too, whatever the process's umask is."""
  usual = tmp_path / "a" / "b"
  old = os.umask(mask)
  try:
    found = store_in(None, "name", lambda: usual)
    found.save("key", {}, b"")
    named = store_in(str(tmp_path / "named"), "name", lambda: usual)
  finally: os.umask(old)
  assert found.folder == usual / "name" and named.folder == tmp_path / "named" / "name"
  made = [p for p in tmp_path.rglob("*") if p.is_dir()]
  assert len(made) == 5 and {p.stat().st_mode & 0o777 for p in made} == {0o700}
  assert {p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p.is_file()} == {0o600}


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME", "TINYHW_CACHE"])
def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str], variable: str) -> None:
  """As services and containers have it. It is told once, and the way on with it."""
  for name in ("XDG_CACHE_HOME", "TINYHW_CACHE", "CACHEDB"): monkeypatch.delenv(name, raising=False)
  monkeypatch.setenv("HOME", str(tmp_path / "none"))
  if variable != "HOME": monkeypatch.setenv(variable, str(tmp_path / "none" / "cache"))
  for _ in range(2): assert jit_store.store().folder is None and kept.store().folder is None
  assert os.listdir(tmp_path) == []
  told = capsys.readouterr().err.splitlines()
  assert told == [f"tinyhw: compiled code is not kept: {tmp_path}/none: the home folder does not exist; "
                  "TINYHW_CACHE=FOLDER says where it may be, TINYHW_CACHE=0 nowhere"]
  (tmp_path / "none").mkdir()
  store_in.cache_clear()
  assert jit_store.store().folder is not None and capsys.readouterr().err == ""


@pytest.mark.parametrize("home", ["relative", "~", "."])
def test_a_home_that_is_no_path_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
  """Whatever the system makes of such a HOME: what has no place of its own is not made where the process stands."""
  monkeypatch.setenv("HOME", home)
  monkeypatch.chdir(tmp_path)
  assert store_in(None, "name", lambda: Path(home) / ".cache").folder is None and os.listdir(tmp_path) == []


def test_a_relative_folder_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.chdir(tmp_path)
  kept = store_in("here", "name", unused)
  (tmp_path / "elsewhere").mkdir()
  monkeypatch.chdir(tmp_path / "elsewhere")
  kept.save("key", {}, b"")
  assert kept.load("key") == ({}, b"") and os.listdir(tmp_path / "elsewhere") == []
  assert store_in("a\0b", "name", unused).folder is None


@pytest.mark.parametrize("key", ["", "../key", "a/b", "a\n", "ä", ".", "a" * 201])
def test_a_key_is_a_name(tmp_path: Path, key: str) -> None:
  for use in (lambda: Store(tmp_path).load(key), lambda: Store(tmp_path).save(key, {}, b"")):
    with pytest.raises(ValueError, match="is no key"): use()


# ---- processes and disks


def test_a_disk_that_is_full_keeps_nothing(tmp_path: Path) -> None:
  """And leaves nothing half written; here a file may not grow beyond some bytes."""
  kept = store_in(str(tmp_path), "name", unused)
  kept.save("old", {}, b"old")
  child = os.fork()
  if not child:
    status = 1
    try:
      resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
      kept.save("new", {}, bytes(5000))
      kept.save("old", {}, bytes(5000))
      kept.save("small", {}, b"small")
      status = 0
    finally: os._exit(status)
  assert os.waitpid(child, 0)[1] == 0
  assert kept.load("new") is None and kept.load("old") == ({}, b"old") and kept.load("small") == ({}, b"small")
  assert len(os.listdir(tmp_path / "name")) == 3


def test_processes_trim_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(files, "LIMIT", 3000)
  monkeypatch.setattr(files, "SELDOM", 1)
  kept, mine = store_in(str(tmp_path), "name", unused), tmp_path / "name" / "mine"
  mine.write_text("mine")
  children = []
  for n in range(3):
    child = os.fork()
    if not child:
      status = 1
      try:
        for m in range(60): kept.save(f"{n}-{m}", {}, bytes(500))
        status = 0
      finally: os._exit(status)
    children.append(child)
  assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
  kept.save("last", {}, bytes(500))
  assert kept.load("last") == ({}, bytes(500)) and mine.read_text() == "mine"
  assert sum(p.stat().st_size for p in entries(tmp_path / "name")) <= 3000
  assert sorted(p.name for p in (tmp_path / "name").iterdir()) == sorted(
    [MARK_NAME, "mine", *(p.name for p in entries(tmp_path / "name"))])


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
  assert any(results) and [p.name for p in tmp_path.iterdir()] == [f"key{SUFFIX}"]


KEYS = st.sampled_from(["a", "b", "c"])
PLACES = st.sampled_from(sorted(IN_ITS_PLACE))


class Kept(RuleBasedStateMachine):
  """A folder that is used, damaged and looked through in any order: what comes back is what was saved last, or nothing;
  what is not the store's stays as it is."""

  def __init__(self) -> None:
    super().__init__()
    self.folder = tempfile.TemporaryDirectory()
    self.top = Path(self.folder.name)
    self.saved: dict[str, Entry] = {}
    self.lost: set[str] = set()  # what need not come back
    self.mine: dict[str, bytes] = {}
    (self.top / "aside").write_bytes(b"aside")
    self.limits = files.LIMIT, files.SELDOM
    self.begin()

  def teardown(self) -> None:
    files.LIMIT, files.SELDOM = self.limits
    self.folder.cleanup()

  @property
  def place(self) -> Path: return self.top / "name"

  @rule()
  def begin(self) -> None:
    """A new process."""
    store_in.cache_clear()
    self.store = store_in(str(self.top), "name", unused)
    if self.store.folder is None: self.lost |= {*self.saved}

  @rule(key=KEYS, header=HEADERS, code=st.binary(max_size=200), trims=st.booleans(), limit=st.integers(0, 1500))
  def save(self, key: str, header: dict[str, Any], code: bytes, trims: bool, limit: int) -> None:
    files.LIMIT, files.SELDOM = limit, 1 if trims else 1 << 30
    blocked = self.store.folder is None or not self.place.is_dir() or (self.place / f"{key}{SUFFIX}").is_dir()
    blocked = blocked or self.place.stat().st_mode & 0o022
    self.store.save(key, header, code)
    if trims: self.lost |= {*self.saved, key}
    if blocked:
      self.lost.add(key)
      return
    self.saved[key] = header, code
    if not trims: self.lost.discard(key)

  @rule(key=KEYS)
  def load(self, key: str) -> None:
    found = self.store.load(key)
    assert found == self.saved.get(key) or found is None and key in self.lost
    if found is not None: assert self.store.holds(key)

  @rule(key=KEYS, at=st.integers(0, 1 << 20), flip=st.integers(0, 255))
  def damage(self, key: str, at: int, flip: int) -> None:
    """A bit flips, or the file ends early."""
    path = self.place / f"{key}{SUFFIX}"
    if path.is_symlink() or not path.is_file() or not (data := path.read_bytes()): return
    at %= len(data)
    path.write_bytes(data[:at] + (bytes([data[at] ^ flip]) + data[at + 1:] if flip else b""))
    self.lost.add(key)

  @rule(key=KEYS, what=PLACES)
  def replace(self, key: str, what: str) -> None:
    path = self.place / f"{key}{SUFFIX}"
    if not self.place.is_dir() or path.is_dir() or not path.exists(): return
    path.rename(self.top / "saved")
    with in_folder(self.place): IN_ITS_PLACE[what](path, self.top / "saved")
    self.lost.add(key)

  @rule(name=st.sampled_from(["mine", f"m ine{SUFFIX}", "0" * 64]), data=st.binary(max_size=3000))
  def put(self, name: str, data: bytes) -> None:
    """The user keeps something there."""
    if not self.place.is_dir(): return
    (self.place / name).write_bytes(data)
    self.mine[name] = data

  @rule(mode=st.sampled_from([0o700, 0o700, 0o755, 0o777, 0o720]))
  def change(self, mode: int) -> None:
    if not self.place.is_dir(): return
    self.place.chmod(mode)
    if mode & 0o022: self.lost |= {*self.saved}  # as long as it is so

  @rule()
  def unmark(self) -> None: (self.place / MARK_NAME).unlink(missing_ok=True)

  @rule()
  def remove(self) -> None:
    shutil.rmtree(self.place, ignore_errors=True)
    self.mine.clear()
    self.lost |= {*self.saved}

  @invariant()
  def what_is_mine_stays(self) -> None:
    assert (self.top / "aside").read_bytes() == b"aside"
    for name, data in self.mine.items(): assert (self.place / name).read_bytes() == data
    if self.place.is_dir():
      halves = [n for n in os.listdir(self.place) if n.startswith(".")]
      assert not halves, halves


@contextmanager
def in_folder(folder: Path) -> Iterator[None]:
  """A socket's path is short."""
  before = os.getcwd()
  os.chdir(folder)
  try: yield
  finally: os.chdir(before)


TestKept = Kept.TestCase
TestKept.settings = settings(max_examples=examples(50), stateful_step_count=30)


def test_a_digest_of_sources_that_are_not_there_is_refused() -> None:
  """A file that has moved would change nothing of what is kept."""
  with pytest.raises(FileNotFoundError, match="no source file of tinyhw is named kernels/nothing.py"):
    files.sources_digest(("core/store.py", "kernels/nothing.py"))
