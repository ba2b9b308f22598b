"""The tables of the kernels page: what stands in each, before text or Markdown lays them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from forensics.compare.kernel_profile import Kernel, KernelProfile, RankProfile
    from forensics.compare.kernels import Change, KernelDiff

_NAMED = 3
_NAME_CHARS = 40


class Table(Struct, frozen=True):
    """A title, the names of the columns and rows of cells; the last column is text of the input, the others ours."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def ms(ns: float) -> str:
    """Nanoseconds as milliseconds with three digits after the point."""
    return f"{ns / 1e6:,.3f}"


def percent(part: float, whole: float) -> str:
    """A share in percent; nothing of nothing is a dash."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def short(name: str) -> str:
    """A kernel's name without what many have in common in front: its return type and torch's own namespaces."""
    return name.removeprefix("void ").removeprefix("at::native::").removeprefix("(anonymous namespace)::")


def rank_name(rank: RankProfile) -> str:
    """The number of a rank, or `?` when its trace does not say."""
    return "?" if rank.rank is None else str(rank.rank)


def times(rank: RankProfile) -> Table:
    """Where the time of one rank went; no rows without device work."""
    if not rank.count:
        return Table("time", (), ())
    parts = (
        (rank.span_ns, "span"),
        (rank.busy_ns, "busy"),
        (rank.idle_ns, "idle"),
        (rank.compute_ns, "compute"),
        (rank.comm_ns, "communication"),
        (rank.exposed_ns, "exposed communication"),
        (rank.memory_ns, "memory"),
    )
    return Table("time", ("ms", "of span", "part"), tuple((ms(t), percent(t, rank.span_ns), n) for t, n in parts))


def ranks(profile: KernelProfile) -> Table:
    """One line a rank."""

    def parts(rank: RankProfile) -> tuple[int, ...]:
        return rank.busy_ns, rank.compute_ns, rank.comm_ns, rank.exposed_ns, rank.idle_ns

    rows = tuple(
        (rank_name(r), ms(r.span_ns), *(percent(t, r.span_ns) for t in parts(r)), r.source) for r in profile.ranks
    )
    return Table("ranks", ("rank", "span ms", "busy", "compute", "comm", "exposed", "idle", "trace"), rows)


def categories(profiles: Iterable[RankProfile]) -> Table:
    """Time by category of kernel, summed over streams and ranks."""
    time, count = Counter[str](), Counter[str]()
    for rank in profiles:
        for share in rank.categories:
            time[share.name] += share.time_ns
            count[share.name] += share.count
    whole = time.total()
    rows = tuple((ms(ns), percent(ns, whole), f"{count[name]:,}", name) for name, ns in time.most_common())
    return Table("categories", ("ms", "share", "count", "category"), rows)


def top(profiles: Iterable[RankProfile], most: int) -> Table:
    """The kernels that took longest in sum."""
    time, count = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for rank in profiles:
        for kernel in rank.top:
            time[kernel.category, kernel.name] += kernel.time_ns
            count[kernel.category, kernel.name] += kernel.count
    whole, longest = time.total(), time.most_common(most or None)
    rows = tuple((ms(ns), percent(ns, whole), f"{count[key]:,}", *key) for key, ns in longest)
    return Table("kernels", ("ms", "share", "count", "category", "kernel"), rows)


def idle(profiles: Iterable[RankProfile]) -> Table:
    """Idle time by what caused it."""
    time, gaps, longest = Counter[str](), Counter[str](), Counter[str]()
    for rank in profiles:
        for part in rank.idle:
            time[part.cause] += part.time_ns
            gaps[part.cause] += part.gaps
            longest[part.cause] = max(longest[part.cause], part.longest_ns)
    whole = time.total()
    rows = tuple((ms(ns), percent(ns, whole), f"{gaps[c]:,}", ms(longest[c]), c) for c, ns in time.most_common())
    return Table("idle", ("ms", "share", "gaps", "longest ms", "cause"), rows)


def steps(profiles: Iterable[RankProfile]) -> Table:
    """One line a step and rank; device time belongs to the step that launched it."""
    rows = tuple(
        (rank_name(r), ms(s.dur_ns), ms(s.busy_ns), ms(s.compute_ns), ms(s.comm_ns), ms(s.exposed_ns), str(s.step))
        for r in profiles
        for s in r.steps
    )
    return Table("steps", ("rank", "step ms", "busy ms", "compute", "comm", "exposed", "step"), rows)


def waits(profile: KernelProfile) -> Table:
    """How long each rank waited for the others."""
    rows = tuple((ms(w.wait_ns), f"{w.last} of {w.collectives}", str(w.rank)) for w in profile.waits)
    return Table("waiting in collectives", ("ms", "came last", "rank"), rows)


def changes(title: str, found: Iterable[Change], per: str) -> Table:
    """What changed between two traces."""
    rows = tuple(
        (ms(c.base_ns), ms(c.cand_ns), f"{c.change_ns / 1e6:+,.3f}", _count(c), c.state, c.name) for c in found
    )
    return Table(title, (f"base ms/{per}", f"cand ms/{per}", "change", "count", "is", "name"), rows)


def _count(change: Change) -> str:
    return f"{change.base_count:,.4g} → {change.cand_count:,.4g}"


def pair(diff: KernelDiff) -> Table:
    """The two traces as wholes, medians over ranks left to the reader: one line a trace."""
    rows = tuple(
        (side, *(ms(t) for t in (r.span_ns, r.busy_ns, r.idle_ns, r.exposed_ns)), r.source)
        for side, profile in (("base", diff.base), ("cand", diff.cand))
        for r in profile.ranks
    )
    return Table("traces", ("side", "span ms", "busy ms", "idle ms", "exposed ms", "trace"), rows)


def notes(profile: KernelProfile) -> Iterator[tuple[str, str]]:
    """What needs a sentence: work from before the window, work without a launch, the data loader, a late rank."""
    before = [(r, r.before_window) for r in profile.ranks if r.before_window]
    lone = [(r, r.no_launch) for r in profile.ranks if r.no_launch]
    for found, words in ((before, "was launched before the window, and is kept"), (lone, "has no launch in the trace")):
        if found:
            yield (
                "unlaunched",
                _who([r for r, _ in found], profile) + f"{_sum([k for _, ks in found for k in ks])} {words}",
            )
    loaders = [r for r in profile.ranks if r.loader is not None]
    if loaders:
        yield "loader", _loader(loaders, profile)
    if profile.waits:
        least = profile.waits[0]
        yield (
            "ranks",
            (
                f"rank {least.rank} waits least in collectives and came last in {least.last} of "
                f"{least.collectives} (by chance with probability {least.chance:.2g})"
            ),
        )


def _who(found: list[RankProfile], profile: KernelProfile) -> str:
    if len(profile.ranks) == 1:
        return ""
    if len(found) > _NAMED:
        return f"{len(found)} ranks: "
    return "rank " + ", ".join(rank_name(r) for r in found) + ": "


def _sum(kernels: list[Kernel]) -> str:
    """How much work, and by name what took longest of it."""
    count, time = Counter[str](), Counter[str]()
    for kernel in kernels:
        count[kernel.name] += kernel.count
        time[kernel.name] += kernel.time_ns
    named = "; ".join(f"{count[name]:,} x {short(name)[:_NAME_CHARS]}" for name, _ in time.most_common(_NAMED))
    pieces = "1 piece" if count.total() == 1 else f"{count.total():,} pieces"
    return f"{pieces} of device work ({ms(time.total())} ms: {named})"


def _loader(found: list[RankProfile], profile: KernelProfile) -> str:
    most = max(found, key=lambda r: r.loader.wait_ns if r.loader else 0)
    loader = most.loader
    if loader is None:
        return ""
    calls = "1 call" if loader.calls == 1 else f"{loader.calls:,} calls"
    share = "" if loader.share is None else f", {100 * loader.share:.1f} % of the steps"
    own = "; batches are made in the training process (num_workers=0)" if loader.in_process else ""
    longest = f"longest on rank {rank_name(most)}: " if len(profile.ranks) > 1 else ""
    return f"{longest}{ms(loader.wait_ns)} ms in {calls}{share}{own}"
