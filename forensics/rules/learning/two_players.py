"""Two networks, or two parts of a loss, that work against each other, after one has won."""

from __future__ import annotations

import numpy as np

from forensics.analyses.learning.parts import parts_of
from forensics.case.series import holding
from forensics.rules.kit import Findings, Run, Struct, at_step, number, onset_at, proof, rule
from forensics.stats.spread import behind_last, median_of


class Won(Struct, frozen=True):
    """Thresholds of LRN037: records, the share of them at the end, and the levels of both losses there.

    A cross-entropy of 0.02 takes less than two in a hundred for what they are not; the generator's is then 4 or more.
    Above `open` the game is still open. At equal strength they are 1.39 (or 0.69, as a mean) and 0.69 (Goodfellow et
    al. 2014).
    """

    records: int = 20
    end: float = 0.25
    won: float = 0.02
    lost: float = 4.0
    open: float = 0.5


@rule("LRN037 discriminator-wins", "metrics", severity="warning", confidence="medium", cause="discriminator_wins")
def discriminator_wins(run: Run, cfg: Won) -> Findings:
    """Find the first discriminator that is not fooled any more beside a generator whose loss stays high."""
    losers = parts_of(run, holding(run, "loss_of_generator"), cfg.records)
    for winner in parts_of(run, holding(run, "loss_of_discriminator"), cfg.records):
        wins, count = winner["value"].to_numpy(), max(1, int(cfg.end * winner.height))
        source = winner["source"][0]
        loser = next((one for one in losers if one["source"][0] == source), None)
        if loser is None or wins[-count:].min() < 0 or median_of(wins[-count:]) >= cfg.won:
            continue
        level, open_game = median_of(loser["value"].to_numpy()[-count:]), np.flatnonzero(wins >= cfg.open)
        if level < cfg.lost:
            continue
        first = winner.row(min(int(open_game[-1]) + 1, len(wins) - 1) if len(open_game) else 0, named=True)
        yield discriminator_wins.finding(
            f"{first['raw_name']} is {number(median_of(wins[-count:]))} and {loser['raw_name'][0]} {number(level)}"
            f": the discriminator is not fooled any more, from {at_step(first['at'])} on",
            "at equal strength the discriminator's loss is 1.39 or, as a mean, 0.69",
            proof(first, winner.row(-1, named=True), loser.row(-1, named=True)),
            onset_at(first),
            numbers={"discriminator": median_of(wins[-count:]), "generator": level},
        )
        return


class Unused(Struct, frozen=True):
    """Thresholds of LRN038: records, the share of them at the end, and what is left there of the highest divergence.

    A level of `nats` or more carries something, however high a first burst was.

    Where the weight of the divergence is raised from zero, it falls to a tenth or a hundredth of its first peak and
    stays there: 10 to 30 nats in images and sentences of VAEs that use their code (Bowman et al. 2016, Kingma et al.
    2016). One that is not used ends at a ten-thousandth.
    """

    records: int = 20
    end: float = 0.25
    left: float = 0.001
    nats: float = 5.0


@rule("LRN038 latent-unused", "metrics", severity="warning", confidence="medium", cause="latent_unused")
def latent_unused(run: Run, cfg: Unused) -> Findings:
    """Find the first divergence from the prior that vanished beside a loss of reconstruction."""
    meant = holding(run, "loss_of_reconstruction", "raw_name")
    rebuilt = {one["source"][0] for one in parts_of(run, meant, cfg.records)}
    for part in parts_of(run, holding(run, "divergence_from_prior"), cfg.records) if rebuilt else ():
        values, count = part["value"].to_numpy(), max(1, int(cfg.end * part.height))
        bound = min(cfg.left * float(values.max()), cfg.nats)
        if part["source"][0] not in rebuilt or not 0 <= values[-count:].max() <= bound or bound <= 0:
            continue
        start = behind_last(values > bound)
        first, before = part.row(start, named=True), part.row(max(0, start - 1), named=True)
        level = median_of(values[-count:])
        yield latent_unused.finding(
            f"{first['raw_name']} fell from {number(float(values.max()))} to {number(level)}"
            f": the code carries nothing, from {at_step(first['at'])} on",
            "a code that equals its prior whatever the sample is tells the decoder nothing of it",
            proof(first, before if start else None, part.row(-1, named=True)),
            onset_at(first, before["at"] if start else None),
            numbers={"highest": float(values.max()), "last": level},
        )
        return
