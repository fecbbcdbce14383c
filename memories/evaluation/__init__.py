"""Offline evaluation of recall and matching against labelled sets, and the operator's own judgements as such sets.

`manage.py bench recall|matching|export` is its door. It measures in a scratch database and never writes an
operator's row; speed is measured by tests/benchmarks. `sets` reads and writes JSON Lines, `metrics` is pure,
`recall` and `matching` evaluate, `judgements` exports.
"""
