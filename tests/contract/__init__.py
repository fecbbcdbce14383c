"""The API against its own document. No part of the suite: `.ci/run contract` runs it."""
