"""The command: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from benchmarks import record, tables
from benchmarks.builds import builds_at_hand
from benchmarks.catalogue import CATALOGUE
from benchmarks.interleaving import ask_all
from benchmarks.loops import LOOPS
from benchmarks.question import Answer
from benchmarks.setting import Setting
from benchmarks.worker import in_a_fresh_process

REPETITIONS = 5
QUICK_REPETITIONS = 2

DESCRIPTION = """\
Measures purgatory side by side with what asyncio and anyio offer and with older designs: all in one run,
each measurement in a process of its own, repetitions interleaved, those that win included.
Questions: {questions}.
"""
EXAMPLES = """\
examples:
  python -m benchmarks                               the usual run, some eight minutes
  python -m benchmarks --full --json full.json       everything, up to a million waits, some forty minutes
  python -m benchmarks --quick one-key memory        a first look at two questions
  python -m benchmarks --sizes 2000,1000 checks      one question, of a thousand and of two thousand waits
  python -m benchmarks --loop uvloop --json run.json
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask the questions named on the command line, or all. Tables appear, and are recorded, one by one."""
    options = _options(arguments)
    builds = builds_at_hand()
    setting = Setting(options.loop, builds, options.full, options.sizes)
    names = list(dict.fromkeys(options.questions)) or list(CATALOGUE)
    questions = [CATALOGUE[name].question(setting) for name in names]
    console = tables.console()
    tables.introduce(console, options.loop, builds, options.repetitions)
    answers: list[Answer] = []
    for answer in ask_all(questions, options.repetitions, console, in_a_fresh_process(setting)):
        answers.append(answer)
        tables.show(answer, console)
        if options.json is not None:
            record.write(options.json, answers, setting, options.repetitions)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says. Ends the program, in plain words, when that makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=DESCRIPTION.format(questions=", ".join(CATALOGUE)),
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "questions", nargs="*", metavar="QUESTION", type=_question_name, help="what to measure (default: all)"
    )
    parser.add_argument("--loop", choices=LOOPS, default="asyncio", help="the event loop to measure on")
    parser.add_argument("--full", action="store_true", help="everything, which takes five times as long")
    parser.add_argument(
        "--sizes", type=_sizes, default=(), metavar="N,...", help="so many waits in place of the usual ones"
    )
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--quick", action="store_true", help=f"{QUICK_REPETITIONS} repetitions")
    depth.add_argument("--repetitions", type=_count, metavar="N", help=f"N repetitions, not {REPETITIONS}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all samples to FILE")
    options = parser.parse_args(arguments)
    if options.loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        parser.error("uvloop is not installed: pip install '.[uvloop]'")
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"there is no directory {options.json.parent} to write {options.json.name} to")
    if options.repetitions is None:
        options.repetitions = QUICK_REPETITIONS if options.quick else REPETITIONS
    return options


def _question_name(name: str) -> str:
    if name not in CATALOGUE:
        raise argparse.ArgumentTypeError(f"no such question: {name!r} (there are {', '.join(CATALOGUE)})")
    return name


def _count(text: str) -> int:
    return _number(text, 1)


def _sizes(text: str) -> tuple[int, ...]:
    # With fewer waits there is nothing that could be few, or grow.
    return tuple(_number(size, 10) for size in text.split(","))


def _number(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least} on, not {text!r}")
    return int(text)


if __name__ == "__main__":
    main()
