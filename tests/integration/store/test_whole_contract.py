"""The whole contract of the results store on PostgreSQL."""

import pytest
from store_specs.store_contracts import *  # noqa: F403

pytestmark = pytest.mark.long
