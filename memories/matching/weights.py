"""The weights of `third_look`, by the numbers of `weighing`: one fact, at odds, two facts.

Learned from tests/data/pairs (multinomial logistic regression, ridge), see docs/matching.md. No code.
"""

from __future__ import annotations

WEIGHTS: tuple[tuple[float, float, float], ...] = (
    (-0.583, -0.717, 1.078),  # bias
    (0.218, 0.149, -0.366),  # cosine
    (0.104, -0.078, -0.026),  # close
    (-0.232, -0.858, 1.090),  # apart
    (0.498, 0.085, -0.583),  # alike
    (0.586, 0.327, -0.913),  # close and alike
    (-0.389, -0.235, 0.624),  # least own
    (-0.304, 0.082, 0.223),  # most own
    (0.173, -2.164, 1.991),  # own heads
    (0.129, 0.049, -0.177),  # own head
    (0.147, 0.767, -0.914),  # own tails
    (-0.703, 0.803, -0.101),  # shared head
    (-0.022, 0.065, -0.043),  # value swapped
    (-0.137, 0.148, -0.010),  # value led alike
    (-0.587, 0.899, -0.312),  # one kind
    (-0.012, -0.161, 0.173),  # kind in head
    (-1.077, 1.402, -0.324),  # opposed
    (2.003, -0.880, -1.123),  # leaning alike
    (-0.128, 0.563, -0.435),  # stance
    (-1.197, -0.046, 1.243),  # amounts differ
    (-0.210, -0.268, 0.478),  # amount more
    (2.220, -1.111, -1.108),  # amounts same
    (-0.358, -1.170, 1.528),  # names differ
    (-0.011, 0.151, -0.140),  # name more
    (-0.792, 0.771, 0.021),  # order
    (0.685, -0.598, -0.088),  # order unsure
    (-0.584, 0.061, 0.523),  # denial
    (-0.055, 0.160, -0.105),  # stance unsure
    (0.816, -0.866, 0.051),  # statements
    (-0.034, -0.019, 0.053),  # length
    (0.854, 0.395, -1.249),  # exclusive
    (0.386, -0.191, -0.195),  # condition more
    (0.634, -0.145, -0.489),  # modal
    (-0.501, 1.258, -0.757),  # no own
    (0.235, 0.228, -0.463),  # one own
    (0.195, 0.150, -0.345),  # light own
    (-0.259, 1.043, -0.783),  # value of one kind
    (-0.076, 0.291, -0.215),  # name swapped
    (-0.627, 0.076, 0.551),  # scopes
    (-0.688, 0.001, 0.686),  # word swapped
    (-0.620, 0.340, 0.280),  # word more
    (2.492, -2.002, -0.489),  # nothing apart
    (1.532, -1.433, -0.099),  # own words alone apart
)
