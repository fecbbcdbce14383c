"""What the tests of commands share: the judge over HTTP."""

from tests.memories.judging.conftest import judge

__all__ = ["judge"]
