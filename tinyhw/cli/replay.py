"""`tinyhw replay`: what a capture submitted, again, on mock cards or a card, beside what it left behind."""
from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from tinyhw.cli.numbers import Real, Whole
from tinyhw.cli.progress import walked
from tinyhw.core.environment import whole
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.written import save, writing
from tinyhw.queues import listing
from tinyhw.queues.capture import Capture
from tinyhw.queues.replay import SETTLE_S, Done, Replay
from tinyhw.toolbox.archive import Archived, archives
from tinyhw.toolbox.replay import machine_for


@click.command()
@click.argument("file")
@click.option("--mockgpu", metavar="CARDS", help="Mock cards to replay on [the capture's own, else the machine's].")
@click.option("--until", type=Whole(0), metavar="N", help="Stop behind submission N.")
@click.option("--loop", default=1, show_default=True, type=Whole(1), metavar="N", help="Do it all so often.")
@click.option("--settle", default=SETTLE_S, show_default=True, type=Real(0.001), metavar="SECONDS",
              help="How long a submission may take.")
@click.option("--dump", metavar="BUFFER", help="Write this buffer (a number, or an address) after each submission.")
@click.option("--to", default=".", type=click.Path(file_okay=False), metavar="FOLDER", help="Where --dump writes.")
@click.option("--move", is_flag=True, help="Have all memory lie at other addresses.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a submission.")
def command(file: str, mockgpu: str | None, until: int | None, loop: int, settle: float, dump: str | None, to: str,
            move: bool, as_json: bool) -> None:
  """Submit again what FILE holds, and compare what each submission leaves behind with what the capture saw.

  Memory whose addresses are taken lies at others: packets and kernel arguments are changed for it, and what only
  may be an address is told. Exit status 1 where something differs, or a signal does not come.

  FILE may be an archive of HIP Record & Replay (a folder, .hrr): its memory, copies and kernels are made again on a
  mock card, and what its program had copied back is compared.

  \b
  Examples:
    tinyhw replay run.thq
    tinyhw replay run.thq --until 5 --dump 14 --to buffers/
    tinyhw replay card.thq --mockgpu gfx1100
    tinyhw replay run.thq --move
    tinyhw replay run.hrr --mockgpu gfx1100
  """
  if Path(file).is_dir(): sys.exit(sum([_archive(path, mockgpu or "", as_json) for path in archives(Path(file))]) > 0)
  bad = written = 0
  if dump is not None and whole(dump) is None:
    raise InvalidArgument(f"{dump!r} is no number and no address", where="--dump")
  for turn in range(loop):
    capture = Capture(file)
    ports, looks, machines = machine_for(capture, mockgpu)
    replay = Replay(capture, ports, look=looks, settle_s=settle, moving=move)
    count = compared = 0
    with walked("replay", capture, quiet=as_json):
      for done in replay.run(until):
        count, compared = count + 1, compared + done.compared
        bad += _tell(capture, done, as_json, file)
        if dump is not None: written += _dump(replay, done, dump, Path(to))
    for machine in machines: machine.close()
    for line in replay.unsure: click.echo(line, err=True)
    if not as_json:
      click.echo(f"{f'turn {turn}: ' if loop > 1 else ''}{count:,} submissions replayed, {compared:,} chunks of memory "
                 f"compared, {'all as captured' if not bad else f'{bad} with differences'}")
  if dump is not None and not written:
    raise InvalidArgument(f"no buffer that was replayed is {dump}", where="--dump",
                          hint="`tinyhw decode` names buffers by their number")
  if bad: sys.exit(1)


def _archive(folder: Path, card: str, as_json: bool) -> int:
  """Replay a process's archive; how many of its results differ."""
  replay, compared, bad = Archived(folder, card), 0, 0
  for done in replay.run():
    compared, bad = compared + 1, bad + (done.differing > 0)
    if as_json: click.echo(json.dumps(asdict(done)))
    elif done.differing: click.echo(str(done))
  for line in replay.notes: click.echo(line, err=True)
  if replay.left_out:
    click.echo("not made again: " + ", ".join(f"{n} of {name}" for name, n in replay.left_out.most_common()), err=True)
  if not as_json:
    click.echo(f"{folder} on {replay.card}: {replay.launches:,} kernels, {compared:,} results compared, "
               f"{'all as recorded' if not bad else f'{bad} differ'}")
  return bad


def _tell(capture: Capture, done: Done, as_json: bool, file: str) -> bool:
  step = done.step
  names = listing.Names(capture, step.event.vendor, step.world)
  waits = [f"{e} ({names.at(e.address)})" if names.at(e.address) else str(e) for e in done.open]
  if as_json:
    click.echo(json.dumps({"submission": step.submission, "queue": str(step.queue), "compared": done.compared,
                           "differences": [str(d) for d in done.differences], "open": waits}))
  elif done.differences or done.open:
    click.echo(f"submission {step.submission}  {step.queue}")
    for difference in done.differences: click.echo(f"  {difference}")
    for wait in waits: click.echo(f"  has not come: {wait}")
    assert step.follow is not None
    for launch in step.follow.launches: click.echo(f"  it launches {names.launched(launch)}")
  return bool(done.differences)


def _dump(replay: Replay, done: Done, wanted: str, folder: Path) -> bool:
  """Whether the buffer is there to be written."""
  number = whole(wanted)
  assert number is not None
  world = done.step.world
  assert world is not None
  made = world.find(number) or next((a for a in world.living() if a.key == number), None)
  if made is None: return False
  with writing(folder): folder.mkdir(parents=True, exist_ok=True)
  save(folder / f"{done.step.submission:06d}-{made.key}.bin", replay.dump(done.step.event.vendor, made))
  return True
