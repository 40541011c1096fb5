"""The command: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks import record, tables
from benchmarks.arguments import add_json, add_loop, add_questions, command_line, whole
from benchmarks.builds import builds_at_hand
from benchmarks.catalogue import CATALOGUE
from benchmarks.interleaving import ask_all
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
    parser = command_line(
        "python -m benchmarks", DESCRIPTION.format(questions=", ".join(CATALOGUE)), EXAMPLES
    )
    add_questions(parser, CATALOGUE)
    add_loop(parser)
    parser.add_argument("--full", action="store_true", help="everything, which takes five times as long")
    parser.add_argument(
        "--sizes", type=_sizes, default=(), metavar="N,...", help="so many waits in place of the usual ones"
    )
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--quick", action="store_true", help=f"{QUICK_REPETITIONS} repetitions")
    depth.add_argument("--repetitions", type=whole(), metavar="N", help=f"N repetitions, not {REPETITIONS}")
    add_json(parser)
    options = parser.parse_args(arguments)
    if options.repetitions is None:
        options.repetitions = QUICK_REPETITIONS if options.quick else REPETITIONS
    return options


def _sizes(text: str) -> tuple[int, ...]:
    # With fewer waits there is nothing that could be few, or grow.
    return tuple(map(whole(10), text.split(",")))


if __name__ == "__main__":
    main()
