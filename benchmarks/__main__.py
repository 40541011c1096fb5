"""The command: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import expiry, growth, memory, one_instant, park_and_complete, record, tables
from benchmarks.interleaving import ask_all
from benchmarks.loops import LOOPS
from benchmarks.question import Question

QUESTIONS: dict[str, Callable[[str], Question]] = {
    "one-key": park_and_complete.one_key,
    "three-keys": park_and_complete.three_keys,
    "memory": memory.memory,
    "expiry": expiry.expiry,
    "one-instant": one_instant.one_instant,
    "growth": growth.growth,
}
REPETITIONS = 5
QUICK_REPETITIONS = 2

DESCRIPTION = """\
Measures purgatory side by side with what asyncio and anyio offer: all in one run, repetitions interleaved,
those that win included. Questions: {questions}.
"""
EXAMPLES = """\
examples:
  python -m benchmarks                               everything, some four minutes
  python -m benchmarks --quick one-key memory        a first look at two questions
  python -m benchmarks --loop uvloop --json run.json
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask the questions named on the command line, or all."""
    options = _parser().parse_args(arguments)
    repetitions: int = options.repetitions or (QUICK_REPETITIONS if options.quick else REPETITIONS)
    console = tables.console()
    tables.introduce(console, options.loop, repetitions)
    names = list(dict.fromkeys(options.questions)) or list(QUESTIONS)
    answers = ask_all([QUESTIONS[name](options.loop) for name in names], repetitions, console)
    for answer in answers:
        tables.show(answer, console)
    if options.json is not None:
        record.write(options.json, answers, options.loop, repetitions)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=DESCRIPTION.format(questions=", ".join(QUESTIONS)),
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "questions", nargs="*", metavar="QUESTION", type=_question_name, help="what to measure (default: all)"
    )
    parser.add_argument("--loop", choices=LOOPS, default="asyncio", help="the event loop to measure on")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REPETITIONS} repetitions")
    parser.add_argument("--repetitions", type=int, metavar="N", help=f"N repetitions, not {REPETITIONS}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all samples to FILE")
    return parser


def _question_name(name: str) -> str:
    if name not in QUESTIONS:
        raise argparse.ArgumentTypeError(f"no such question: {name!r} (there are {', '.join(QUESTIONS)})")
    return name


if __name__ == "__main__":
    main()
