"""Thresholds of the course of a loss: spikes, jumps of the level, lasting climbs and explosions."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Thresholds of LRN001, LRN003 and LRN004; ratios are of losses, z in standard errors.

    A loss `exploded` above its first value has left its course after any number of records: no training starts a
    thousand times below where it may go. So has one whose last two records lie `burst` times above all before them,
    `burst_few` times where the records are few and less than `burst_left` stay up there, and above `burst_least`.

    From `records` on, `window` are the records of a level. `jump_z` and `jump` are what a step of the level must
    exceed, `jump_level_z` what the levels themselves must differ by. `climb_z` and `climb` bound a lasting rise, as do
    `over_waves` times the largest one that came back; `kept` is the share of the last records that must lie in its
    upper half; `left` records must follow. `near`, `far` and `big` part a divergence from a level shift: the last
    level, and the size of the rise. A divergence is an error where the rise is more than `rise` and `sigmas` times the
    noise of one record, and lasts for `wasted` of all records without turning, or ends above the first level. It is
    none where it gives back less than `lost` of what was learned: the loss of a preference that fell from 0.63 to 0.007
    and rose to 0.009 is learned by heart, and wanders.

    A spike stands `spike_z` deviations and `spike_ratio` above the past, and `over_dips` times the largest dip. One of
    a single record needs `lone_ratio` and `lone_over_dips`, as heavy tails have single outliers. The median of `back`
    records must return within `patience` records, or `patience_share` of all; `most` spikes are followed.

    Source: calibrated on seeded healthy and faulty series, see the tests of the rates.
    """

    exploded: float = 1000.0
    burst: float = 2.0
    burst_few: float = 3.0
    burst_left: int = 5
    burst_least: float = 1.0
    records: int = 20
    window: int = 51
    jump_z: float = 5.0
    jump_level_z: float = 4.0
    jump: float = 1.04
    climb_z: float = 4.0
    climb: float = 1.015
    over_waves: float = 1.5
    kept: float = 0.9
    left: int = 20
    near: float = 1.15
    far: float = 1.25
    big: float = 1.2
    rise: float = 1.2
    sigmas: float = 5.0
    wasted: float = 0.1
    lost: float = 0.02
    spike_z: float = 7.0
    spike_ratio: float = 1.2
    over_dips: float = 1.5
    lone_ratio: float = 1.25
    lone_over_dips: float = 2.5
    back: int = 10
    patience: int = 200
    patience_share: float = 0.1
    most: int = 1000
