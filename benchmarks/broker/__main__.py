"""The command: ``python -m benchmarks.broker``."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import libversion

from benchmarks import record, tables
from benchmarks.arguments import add_json, add_questions, command_line, seconds_between, whole
from benchmarks.broker.idle import idle
from benchmarks.broker.processes import AVAILABLE
from benchmarks.broker.throughput import throughput
from benchmarks.broker.wake import wake
from benchmarks.builds import build
from benchmarks.interleaving import ask_all
from benchmarks.question import Answer, Question
from benchmarks.setting import Setting

REPETITIONS = 3
WAKES = 100
RECORDS = 200_000
POLLS = 1000
SECONDS = 10.0
QUICK_REPETITIONS = 1
QUICK_WAKES = 20
QUICK_RECORDS = 50_000
QUICK_SECONDS = 2.0

COMMAND = "python -m benchmarks.broker"

QUESTIONS: Mapping[str, Callable[[argparse.Namespace], Question]] = {
    "wake": lambda options: wake(options.wakes),
    "throughput": lambda options: throughput(options.records),
    "idle-consumers": lambda options: idle(options.polls, options.seconds),
}

DESCRIPTION = f"""\
Measures the example broker beside librdkafka's mock cluster, with the same client and the same settings.
Questions: {", ".join(QUESTIONS)}.
"""
EXAMPLES = """\
examples:
  python -m benchmarks.broker                                 all of it, some nine minutes
  python -m benchmarks.broker --quick                         a first look, in two minutes
  python -m benchmarks.broker throughput --records 1000000
  python -m benchmarks.broker --json broker.json
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; exit with a message where a measurement fails."""
    options = _options(arguments)
    loop = "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"
    setting = Setting(loop, (build(),))
    console = tables.console()
    tables.introduce(console, loop, setting.builds, options.repetitions)
    console.print(f"The client, and the mock cluster, is librdkafka {libversion()[0]}.\n")
    answers: list[Answer] = []
    try:
        for answer in ask_all(
            [QUESTIONS[name](options) for name in options.questions], options.repetitions, console
        ):
            answers.append(answer)
            tables.show(answer, console)
            if options.json is not None:
                record.write(options.json, answers, setting, options.repetitions, command=COMMAND)
    except (RuntimeError, OSError) as error:
        raise SystemExit(str(error)) from None


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says. Ends the program, in plain words, when that makes no sense."""
    parser = command_line(COMMAND, DESCRIPTION, EXAMPLES)
    add_questions(parser, QUESTIONS)
    parser.add_argument("--quick", action="store_true", help="one repetition, and less of everything")
    for name, usual, meaning in (
        ("--repetitions", REPETITIONS, "repetitions"),
        ("--wakes", WAKES, "records that wake a consumer"),
        ("--records", RECORDS, "records to produce"),
        ("--polls", POLLS, "idle consumers"),
    ):
        parser.add_argument(name, type=whole(), metavar="N", help=f"N {meaning}, not {usual:,}")
    parser.add_argument(
        "--seconds",
        type=seconds_between(0.1, 600),
        metavar="S",
        help=f"watch the idle for S seconds, not {SECONDS:g}",
    )
    add_json(parser)
    options = parser.parse_args(arguments)
    quick: bool = options.quick
    options.repetitions = options.repetitions or (QUICK_REPETITIONS if quick else REPETITIONS)
    options.wakes = options.wakes or (QUICK_WAKES if quick else WAKES)
    options.records = options.records or (QUICK_RECORDS if quick else RECORDS)
    options.polls = options.polls or POLLS
    options.seconds = options.seconds or (QUICK_SECONDS if quick else SECONDS)
    options.questions = list(dict.fromkeys(options.questions)) or list(QUESTIONS)
    if "idle-consumers" in options.questions and not AVAILABLE:
        parser.error("idle-consumers needs Linux, which tells what another process uses")
    return options


if __name__ == "__main__":
    main()
