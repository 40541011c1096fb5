"""The command: ``python -m benchmarks.longpoll``."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping, Sequence

from benchmarks import record, tables
from benchmarks.arguments import add_json, add_questions, command_line, whole
from benchmarks.broker.processes import AVAILABLE
from benchmarks.builds import build
from benchmarks.interleaving import ask_all
from benchmarks.longpoll.wake_all import wake_all
from benchmarks.longpoll.wake_one import wake_client, wake_topic
from benchmarks.question import Answer, Question
from benchmarks.setting import Setting

REPETITIONS = 3
POLLS = 10_000
RECORDS = 2000
# Of those that the usual way shows to everybody.
RECORDS_TO_ALL = 50
QUICK_REPETITIONS = 1
QUICK_POLLS = 2000
QUICK_RECORDS = 500

COMMAND = "python -m benchmarks.longpoll"

QUESTIONS: Mapping[str, Callable[[argparse.Namespace], Question]] = {
    "wake-all": lambda options: wake_all(options.loop, options.polls),
    "wake-topic": lambda options: wake_topic(options.loop, options.polls, options.records),
    "wake-client": lambda options: wake_client(
        options.loop, options.polls, min(options.records, RECORDS_TO_ALL)
    ),
}

DESCRIPTION = f"""\
Measures long polls that wait in a purgatory beside those that wait for an asyncio.Condition and, as the
floor, for a future without any timeout, on one server.
Questions: {", ".join(QUESTIONS)}.
"""
EXAMPLES = """\
examples:
  python -m benchmarks.longpoll                            all of it, some eight minutes
  python -m benchmarks.longpoll --quick                    a first look, in a minute
  python -m benchmarks.longpoll wake-topic --polls 1000
  python -m benchmarks.longpoll --json longpoll.json
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; exit with a message where a measurement fails."""
    options = _options(arguments)
    setting = Setting(options.loop, (build(),))
    console = tables.console()
    tables.introduce(console, options.loop, setting.builds, options.repetitions)
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
        raise SystemExit(str(error) or repr(error)) from None


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says. Ends the program, in plain words, when that makes no sense."""
    parser = command_line(COMMAND, DESCRIPTION, EXAMPLES)
    add_questions(parser, QUESTIONS)
    parser.add_argument("--quick", action="store_true", help="one repetition, and less of everything")
    for name, usual, meaning in (
        ("--repetitions", REPETITIONS, "repetitions"),
        ("--polls", POLLS, "long polls that wait"),
        ("--records", RECORDS, f"records that wake one of them (of wake-client {RECORDS_TO_ALL} at most)"),
    ):
        parser.add_argument(name, type=whole(), metavar="N", help=f"N {meaning}, not {usual:,}")
    add_json(parser)
    options = parser.parse_args(arguments)
    if not AVAILABLE:
        parser.error("this needs Linux, which tells what another process uses")
    quick: bool = options.quick
    options.loop = "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"
    options.repetitions = options.repetitions or (QUICK_REPETITIONS if quick else REPETITIONS)
    options.polls = options.polls or (QUICK_POLLS if quick else POLLS)
    options.records = options.records or (QUICK_RECORDS if quick else RECORDS)
    options.questions = list(dict.fromkeys(options.questions)) or list(QUESTIONS)
    return options


if __name__ == "__main__":
    main()
