"""What the tests of the evaluation share: the judge over HTTP."""

from tests.memories.judging.conftest import judge

__all__ = ["judge"]
