"""The tests that docs/how-to/test-kafka-clients.md shows pass."""

from __future__ import annotations

import pytest

from tests.docs.programs import DOCS, ROOT, programs_of

PAGE = DOCS / "how-to" / "test-kafka-clients.md"


@pytest.fixture(autouse=True)
def _checkout_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # To import the plugins of other tests takes longer than the tests.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_the_shown_tests_pass(pytester: pytest.Pytester) -> None:
    plugin, consumer, _, fault, _ = programs_of(PAGE)
    pytester.makeconftest(plugin.code)
    pytester.makepyfile(test_consumer=consumer.code, test_fault=fault.code)
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")

    result = pytester.runpytest_subprocess("-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=2)


def test_the_shown_fixture_chooses_the_number_of_brokers(pytester: pytest.Pytester) -> None:
    plugin, _, override, _, _ = programs_of(PAGE)
    pytester.makeconftest(f"{plugin.code}\n{override.code}")
    pytester.makepyfile("def test_one(brokers):\n    assert ',' not in brokers.bootstrap_servers")

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)
