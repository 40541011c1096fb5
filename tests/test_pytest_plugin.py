"""The pytest plugin in test suites like those of its users, which pytest runs inside pytest."""

from __future__ import annotations

import re

import pytest

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""

CONFTEST = 'pytest_plugins = ["purgatory.pytest_plugin"]\n'


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A test suite that loads only the plugin."""
    pytester.makefile(".ini", pytest=INI)
    pytester.makeconftest(CONFTEST)
    return pytester


def run(suite: pytest.Pytester, tests: str) -> pytest.RunResult:
    suite.makepyfile(tests)
    return suite.runpytest_inprocess("-p", "no:cacheprovider")


def test_a_test_that_requests_virtual_time_runs_on_a_virtual_time_loop(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import asyncio
        import pytest
        from purgatory.testing import VirtualTimeLoop

        async def test_an_hour(virtual_time):
            assert asyncio.get_running_loop() is virtual_time
            assert isinstance(virtual_time, VirtualTimeLoop)
            assert virtual_time.time() == 0.0
            await asyncio.sleep(3600)
            assert virtual_time.time() == 3600.0

        async def test_another_has_a_new_loop(virtual_time):
            assert virtual_time.time() == 0.0

        class TestInAClass:
            @pytest.mark.parametrize("seconds", [1, 2])
            async def test_with_parameters(self, virtual_time, seconds):
                await asyncio.sleep(seconds)
                assert virtual_time.time() == seconds
        """,
    )
    result.assert_outcomes(passed=4)


def test_a_test_that_does_not_request_it_keeps_its_loop(
    suite: pytest.Pytester,
) -> None:
    result = run(
        suite,
        """
        import asyncio
        from purgatory.testing import VirtualTimeLoop

        async def test_ordinary(request):
            loop = asyncio.get_running_loop()
            assert not isinstance(loop, VirtualTimeLoop)
            assert loop.time() > 0
            # Its name is unchanged, too.
            assert request.node.name == "test_ordinary"

        def test_without_a_loop():
            assert True
        """,
    )
    result.assert_outcomes(passed=2)


def test_a_suite_with_loop_factories_of_its_own_keeps_its_loops(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        CONFTEST
        + """
import asyncio

class Mine(asyncio.SelectorEventLoop):
    pass

def pytest_asyncio_loop_factories():
    return {"mine": Mine, "plain": asyncio.SelectorEventLoop}
"""
    )
    result = run(
        suite,
        """
        import asyncio

        async def test_ordinary(request):
            name = type(asyncio.get_running_loop()).__name__
            assert ("Mine" in name) == ("mine" in request.node.name)
            assert ("plain" in request.node.name) != ("mine" in request.node.name)

        async def test_virtual(virtual_time, request):
            await asyncio.sleep(3600)
            assert virtual_time.time() == 3600
            # It runs once, whatever the number of loops.
            assert request.node.name == "test_virtual"
        """,
    )
    result.assert_outcomes(passed=3)


@pytest.mark.parametrize("requested_by_fixture", [True, False])
def test_a_purgatory_opened_by_a_fixture_that_yields_shares_the_virtual_time_of_the_test(
    suite: pytest.Pytester, requested_by_fixture: bool
) -> None:
    result = run(
        suite,
        f"""
        import asyncio
        import pytest_asyncio
        from purgatory import DelayedOperation, OperationState, Purgatory

        class Wait(DelayedOperation[str]):
            def try_complete(self):
                return False

            def on_complete(self):
                return "waited"

        @pytest_asyncio.fixture
        async def purgatory({"virtual_time" if requested_by_fixture else ""}):
            async with Purgatory() as purgatory:
                yield purgatory
            assert all(operation.done for operation in left)

        left = []

        async def test_expiry({"" if requested_by_fixture else "virtual_time, "}purgatory):
            loop = asyncio.get_running_loop()
            await asyncio.sleep(1)
            operation = purgatory.try_complete_else_watch(Wait(3600.0), ["key"])
            assert await operation == "waited"
            assert operation.expired
            assert loop.time() == 3601.0
            left.append(purgatory.try_complete_else_watch(Wait(None), ["key"]))
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_fixture_that_requests_virtual_time_moves_its_test_to_it(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import asyncio
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def an_hour_later(virtual_time):
            await asyncio.sleep(3600)

        async def test_later(an_hour_later):
            assert asyncio.get_running_loop().time() == 3600.0
        """,
    )
    result.assert_outcomes(passed=1)


@pytest.mark.timeout(20)
def test_a_test_that_hangs_fails_at_once_with_an_error_that_says_where(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import asyncio

        async def test_hangs(virtual_time):
            helper = asyncio.create_task(asyncio.Event().wait(), name="helper")
            await asyncio.Event().wait()

        async def test_the_next_one_passes(virtual_time):
            await asyncio.sleep(1)
        """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*WouldWaitForever: nothing is left to run and no timer is armed; *",
            "*test_a_test_that_hangs_fails_at_once_with_an_error_that_says_where.py:5 in test_hangs",
            "*helper: *locks.py:* in wait",
        ]
    )


def test_a_fixture_that_hangs_fails_at_once(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        import asyncio
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def hanging(virtual_time):
            await asyncio.Event().wait()

        async def test_with_it(hanging):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*WouldWaitForever*"])


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_a_loop_shared_by_several_tests_is_refused(suite: pytest.Pytester, scope: str) -> None:
    result = run(
        suite,
        f"""
        import asyncio
        import pytest

        class TestShared:
            @pytest.mark.asyncio(loop_scope="{scope}")
            async def test_virtual(self, virtual_time):
                await asyncio.sleep(1)
        """,
    )
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) == 0, outcomes
    assert re.search(r"virtual_time .*loop_scope", result.stdout.str())


def test_a_test_that_is_not_async_is_refused(suite: pytest.Pytester) -> None:
    result = run(
        suite,
        """
        def test_not_async(virtual_time):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*Failed: virtual_time needs a loop that serves one test: *"])


def test_a_marked_test_in_strict_mode_gets_virtual_time(suite: pytest.Pytester) -> None:
    suite.makefile(".ini", pytest=INI.replace("auto", "strict"))
    result = run(
        suite,
        """
        import asyncio
        import pytest

        @pytest.mark.asyncio
        async def test_marked(virtual_time):
            await asyncio.sleep(3600)
            assert virtual_time.time() == 3600.0
        """,
    )
    result.assert_outcomes(passed=1)


def test_an_unmarked_test_in_strict_mode_is_told_of_the_marker_and_of_auto_mode(
    suite: pytest.Pytester,
) -> None:
    suite.makefile(".ini", pytest=INI.replace("auto", "strict"))
    result = run(
        suite,
        """
        async def test_unmarked(virtual_time):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*Failed: virtual_time needs * @pytest.mark.asyncio, or set asyncio_mode = auto in *"]
    )


@pytest.mark.parametrize(
    "without",
    [
        pytest.param("", id="disabled"),
        pytest.param("import sys\nsys.modules['pytest_asyncio'] = None\n", id="missing"),
    ],
)
def test_without_pytest_asyncio_one_line_says_what_to_install(
    pytester: pytest.Pytester, without: str
) -> None:
    pytester.makeconftest(without + CONFTEST)
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: purgatory.pytest_plugin needs pytest-asyncio 1.4 or newer, *'asyncio-purgatory?testing?'"]
    )
    assert "INTERNALERROR" not in result.stdout.str()
