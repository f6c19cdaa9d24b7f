"""The fuzzer as a program: ``python -m tests.hostile.fuzz --count 100000 --seed 1 --jobs 2``.

Case number n of a seed is the same on every machine and in every run: ``--only n`` judges that one alone and writes it
to a file. Each process has a limit on its processor time from case to case, so that not even a hang inside a library
stops the run; its greatest memory is that of all its cases together, the libraries included.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final

from tests.hostile.judge import Case, judge
from tests.hostile.mutator import spoil_bytes, spoil_document
from tests.hostile.seeds import seeds

MOST_MEGABYTES: Final = 500
HANG_SECONDS: Final = 30
"""Of processor time for one case, before its process is killed."""
BYTE_SHARE: Final = 0.4


def make_case(seed: int, number: int) -> Case:
    """Case ``number`` of a seed."""
    return spoil(random.Random(f"{seed}:{number}"))


def spoil(source: random.Random) -> Case:
    """A sound certificate, spoiled: the document or its bytes."""
    sound = source.choice(seeds())
    others = [other.data for other in seeds()]
    if source.random() < BYTE_SHARE:
        return Case(sound, spoil_bytes(source, sound.data, others))
    return Case(sound, *spoil_document(source, sound.data, others))


@dataclass
class Tally:
    """What came of many cases."""

    codes: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0
    longest: tuple[float, int] = (0.0, -1)
    megabytes: float = 0.0
    most_at: int = -1
    faults: list[str] = field(default_factory=list)

    def add(self, number: int, code: int, seconds: float, megabytes: float, fault: str) -> None:
        """One more."""
        self.codes[code] += 1
        self.seconds += seconds
        self.longest = max(self.longest, (seconds, number))
        if megabytes > self.megabytes:
            self.megabytes, self.most_at = megabytes, number
        if megabytes > MOST_MEGABYTES and not fault:
            fault = f"{megabytes:.0f} MB"
        if fault:
            self.faults.append(f"case {number}: {fault}")

    def lines(self) -> Iterator[str]:
        """For people."""
        counts = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        yield f"{self.codes.total()} cases; by exit code {counts}"
        yield f"longest {self.longest[0]:.2f} s of processor time (case {self.longest[1]}), {self.seconds:.0f} s in all"
        yield f"at most {self.megabytes:.0f} MB in a process, libraries included (case {self.most_at})"
        yield from self.faults
        yield f"{len(self.faults)} faults"


def megabytes() -> float:
    """The most that this process ever had in memory."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _work(numbers: range, seed: int, results: Connection) -> None:
    """Judge cases in this process; each is announced before it is judged."""
    warnings.simplefilter("error")
    for number in numbers:
        case = make_case(seed, number)
        results.send(number)
        used = resource.getrusage(resource.RUSAGE_SELF)
        allowed = int(used.ru_utime + used.ru_stime) + HANG_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
        judged = judge(case)
        results.send((number, judged.exit_code, judged.seconds, megabytes(), judged.fault))
    results.close()


def run(count: int, seed: int, jobs: int = 1, progress: bool = False) -> Tally:
    """Judge cases 0 … count − 1, each number by one of ``jobs`` processes."""
    context, tally = multiprocessing.get_context("spawn"), Tally()

    def start(numbers: range) -> Connection:
        ours, theirs = context.Pipe(duplex=False)
        context.Process(target=_work, args=(numbers, seed, theirs), daemon=True).start()
        theirs.close()
        return ours

    work = {start(range(job, count, jobs)): -1 for job in range(jobs)}
    while work:
        for results in wait(list(work)):
            assert isinstance(results, Connection)
            try:
                found = results.recv()
            except EOFError:
                at = work.pop(results)
                if at >= 0:
                    tally.add(at, -1, HANG_SECONDS, 0, "the process died, or was killed as it took too long")
                    work[start(range(at + jobs, count, jobs))] = -1
                continue
            if isinstance(found, int):
                work[results] = found
                continue
            work[results] = -1
            tally.add(*found)
            if progress and tally.codes.total() % 1000 == 0:
                print(*tally.lines(), sep="; ", flush=True)
    return tally


def main() -> int:
    """0 where no case has a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="judge this case alone, and write it to a file")
    given = parser.parse_args()
    if given.only is not None:
        case = make_case(given.seed, given.only)
        path = Path(f"case-{given.seed}-{given.only}.json")
        path.write_bytes(case.data)
        print(path, case.seed.name, judge(case), f"{megabytes():.0f} MB")
        return 0
    tally = run(given.count, given.seed, given.jobs, progress=True)
    print(*tally.lines(), sep="\n")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
