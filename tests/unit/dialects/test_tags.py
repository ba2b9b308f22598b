"""Tags of ranks in the heads of lines: behind a time and a level, and numbers that the log shows to be ranks."""

import pytest

from forensics.dialects import prefixes


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("2025-03-04 09:25:00 ERROR [rank5] loss is nan", "loss is nan"),
        ("2025-03-04 09:25:00,411 - INFO - [rank5] step 3", "step 3"),
        ("[2025-03-04 09:25:00][INFO][rank 5] step 3", "step 3"),
        ("03/04 09:25:00 (rank 5) step 3", "step 3"),
        ("09:25:00 | WARNING | rank=5 | step 3", "step 3"),
        ("INFO 2025-03-04T09:25:00Z <rk5> step 3", "step 3"),
        ("(rank: 5) step 3", "step 3"),
        ("[5]<stderr>:step 3", "step 3"),
        ("[1,5]<stderr>:step 3", "step 3"),
    ],
)
def test_a_tag_with_its_word_is_found_behind_a_time_and_a_level(line: str, rest: str) -> None:
    prefix, rank = prefixes.split(line)
    assert (line[len(prefix) :], rank) == (rest, 5)


@pytest.mark.parametrize(
    "line",
    [
        "2025-03-04 09:25:00 rank 5 reached the barrier",
        "2025-03-04 09:25:00 INFO lora rank=16 alpha=32",
        "(r2) 0.93",
        "loss [rank5] 0.3",
        "2025-03-04 09:25:00 [5] step 3",
    ],
)
def test_a_rank_in_a_sentence_or_a_bare_number_is_no_tag(line: str) -> None:
    assert prefixes.split(line)[1] is None


def _log(form: str, *, ranks: int = 4, steps: int = 6) -> list[bytes]:
    lines = (
        form.format(r=r, node=r // 2, gpu=r % 2, step=10 * i, loss=3 - i / 7)
        for i in range(steps)
        for r in range(ranks)
    )
    return ["\n".join(lines).encode()]


@pytest.mark.parametrize(
    "form",
    [
        "2025-03-04 09:25:00 r0{r} it={step} loss={loss:.3f}",
        "09:25:00 [{r}] it={step}, loss={loss:.3f}",
        "2025-03-04 09:25:00,123 - [{r}] - step {step} loss {loss:.3f}",
        "gpu{r}: step {step} loss {loss:.3f}",
        "node{node}/gpu{gpu} | step {step} loss {loss:.3f}",
        "{r}> step {step} loss {loss:.3f}",
    ],
)
def test_a_number_before_lines_is_a_rank_where_those_who_print_in_turn_tell_one_step(form: str) -> None:
    lead = prefixes.lead_of(_log(form))
    assert lead is not None
    line = form.format(r=3, node=1, gpu=1, step=7, loss=0.1)
    assert lead.match(line)[1] == 3
    assert prefixes.split(line, lead)[1] == 3


@pytest.mark.parametrize(
    "form",
    [
        "[{step}] loss {loss:.3f}",  # steps
        "[{r}] lr {loss:.5f}",  # groups of parameters
        "2025-03-04 09:25:00 [{r}] of 4 folds: loss {loss:.3f}",
        "5> step {step} loss {loss:.3f}",
    ],
)
def test_a_number_that_counts_something_else_is_no_rank(form: str) -> None:
    lead = prefixes.lead_of(_log(form))
    assert lead is None or not lead.tells_rank


def test_devices_of_a_node_count_on_from_those_of_the_nodes_before() -> None:
    own = "node{node}/rank{r}: step {step} loss {loss:.3f}"
    lead = prefixes.lead_of(_log(own))
    assert lead is not None
    assert lead.match("node1/rank3: step 3")[1] == 3  # counted over all nodes


@pytest.mark.parametrize("mark", ["|", ">"])
def test_the_last_digit_of_a_time_is_no_tag(mark: str) -> None:
    """A line of loguru ends its time with three digits and a bar."""
    said = ("saved" if step % 10 == 9 else f"step {step}/60 loss 2.5" for step in range(60))
    lines = (f"2025-03-04 09:25:{n // 2:02d}.{37 * n % 1000:03d} {mark} {words}" for n, words in enumerate(said))
    lead = prefixes.lead_of(["\n".join(lines).encode()])
    assert lead is None or not lead.tells_rank
