"""What is tested on the brokers of this project, on Apache Kafka."""

import pytest

from tests.examples.delayed.test_clients import *  # noqa: F403  # all tests of the module run here, too
from tests.examples.delayed.test_designs import *  # noqa: F403  # all tests of the module run here, too
from tests.examples.delayed.test_forwarder import *  # noqa: F403  # all tests of the module run here, too

pytestmark = pytest.mark.kafka

# By default, Kafka makes a topic that somebody looks for.
del test_a_target_that_does_not_exist_refuses_a_record  # noqa: F821  # it comes with the others
